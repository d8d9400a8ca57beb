"""The doctor compares who may use a queue by its file with the policy that holds it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plimsoll.adapters.kubernetes import Response
from tests.support.doctor import findings_by_check, guarding, healthy

FILE = "/api/v1/namespaces/plimsoll/configmaps/plimsoll-queues"


def told(access: str | None, *, policy: bool, text: str | None = None) -> Any:
    environment = healthy()
    cluster = guarding(environment)
    if access is not None or text is not None:
        file = text or json.dumps({"queues": [{"name": "lab", "access": access}]})
        answered = cluster.inner.call

        class Keeping:
            def call(self, method: str, path: str, **request: Any) -> Response:
                if path == FILE:
                    return Response(status=200, body={"data": {"queues.json": file}})
                return answered(method, path, **request)

        cluster.inner = Keeping()
    name = "plimsoll-queue-access"
    rules = {"matchConstraints": {"resourceRules": []}, "validations": []}
    bound = {"policyName": name, "validationActions": ["Deny"]}
    cluster.lists |= {
        "validatingadmissionpolicies": [{"metadata": {"name": name}, "spec": rules}] * policy,
        "validatingadmissionpolicybindings": [{"metadata": {"name": name}, "spec": bound}] * policy,
    }
    _, found = findings_by_check(environment)
    return found.get("queue access")


@pytest.mark.parametrize(
    ("access", "policy", "state", "words"),
    [
        ("all", True, "fail", "the file lets every namespace use lab, and the policy"),
        ("labelled", False, "info", "the planner alone holds others back"),
        ("labelled", True, "ok", "agree"),
    ],
)
def test_where_file_and_policy_disagree_the_doctor_says_so(access, policy, state, words):
    found = told(access, policy=policy)
    assert found["state"] == state
    assert words in found["says"]
    assert (found["cure"] is None) == (state == "ok")


@pytest.mark.parametrize(("access", "policy"), [(None, True), (None, False), ("all", False)])
def test_where_nobody_asks_for_grants_nothing_is_said(access, policy):
    assert told(access, policy=policy) is None


def test_a_file_that_cannot_be_read_is_worth_knowing():
    assert told(None, policy=True, text="{")["state"] == "info"
