"""What the cluster's own admission and queues do for us."""

from __future__ import annotations

import pytest

from plimsoll.adapters.kubernetes import Response
from plimsoll.domain.registry import Mode
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from tests.support.builders import NOON
from tests.support.cli_environment import a_cluster, an_environment
from tests.support.doctor import (
    BY_POLICY,
    SCHEMA,
    USED,
    findings_by_check,
    guarding,
    healthy,
    refused,
)


def test_fields_that_nobody_holds_us_to_must_be_fixed():
    environment = healthy()
    guarding(environment).foreign = None
    status, found = findings_by_check(environment)
    assert (status, found["fields"]["state"]) == (1, "fail")
    for about in ("Node base-1", "Pod default/web-", "plimsoll-departures", "plimsoll-history"):
        assert about in found["fields"]["says"]
    cure = "plimsoll clusters add harbor --context CONTEXT --overlay none --stack plimsoll, and"
    assert found["fields"]["cure"].startswith(cure)


@pytest.mark.parametrize(
    ("refusal", "says"),
    [
        (
            refused('admission webhook "w" denied the request: no', 400),
            'Node base-1: admission webhook "w"',
        ),
        (refused(BY_POLICY.replace("'plimsoll-nodes'", "'house-rules'")), "house-rules"),
    ],
    ids=["a webhook", "another policy"],
)
def test_what_something_else_refuses_proves_nothing_of_our_policies(refusal, says):
    environment = healthy()
    guarding(environment).foreign = refusal
    status, found = findings_by_check(environment)
    assert (status, found["fields"]["state"]) == (0, "info")
    assert says in found["fields"]["says"]


def test_without_any_right_to_write_no_field_can_be_changed():
    environment = healthy(Mode.OBSERVE)
    no_right = refused('nodes "a" is forbidden: User "x" cannot patch resource "nodes"')
    guarding(environment).foreign = guarding(environment).ours = no_right
    status, found = findings_by_check(environment)
    assert (status, found["fields"]["state"]) == (0, "ok")
    assert "no right to write at all" in found["fields"]["says"]
    assert "our fields" not in found


def test_a_webhook_that_spoils_our_own_writes_is_found_before_a_drain_finds_it():
    environment = healthy()
    guarding(environment).ours = refused(f"{BY_POLICY}, spec.template.spec")
    status, found = findings_by_check(environment)
    assert (status, found["our fields"]["state"]) == (1, "fail")
    assert "exempt the group" in found["our fields"]["cure"]
    assert found["fields"]["state"] == "ok"


def test_a_cluster_that_has_nothing_yet_cannot_be_tried():
    environment = healthy()
    empty = FakeTransport(FakeCluster(now=NOON), environment.clock)
    guarding(environment).inner = empty
    _, found = findings_by_check(environment)
    assert found["fields"]["state"] == "info"


def test_no_trial_is_kept():
    environment, _ = an_environment(mode=Mode.ACT)
    before = [n.resource_version for n in environment.open(a_cluster()).nodes()]
    _, found = findings_by_check(environment)
    assert found["fields"]["state"] == "fail"  # a fake cluster has no policies, so both passed
    assert [n.resource_version for n in environment.open(a_cluster()).nodes()] == before


@pytest.mark.parametrize(
    ("version", "fields", "queue"),
    [
        ("v1.28.5-eks-1", "info", "info"),
        ("v1.29.0", "info", "fail"),
        ("v1.30.0", "fail", "fail"),
        ("a fork of its own", "fail", "fail"),
    ],
)
def test_what_a_cluster_is_too_old_for_is_told_and_need_not_be_fixed(version, fields, queue):
    environment = healthy()
    guard = guarding(environment)
    guard.version, guard.foreign = version, None
    guard.queue = Response(status=404, body={"message": "not found"}, headers=USED)
    _, found = findings_by_check(environment)
    assert (found["fields"]["state"], found["queue"]["state"]) == (fields, queue)


@pytest.mark.parametrize(
    ("answer", "state", "said"),
    [
        (Response(status=404, body={}, headers=USED), "fail", "no FlowSchema plimsoll"),
        (Response(status=200, body=SCHEMA), "info", "does not say"),
        (
            Response(status=200, body=SCHEMA, headers={"x-kubernetes-pf-flowschema-uid": "8"}),
            "fail",
            "do not go through",
        ),
        (
            Response(
                status=200,
                body={**SCHEMA, "status": {"conditions": [{"type": "Dangling", "status": "True"}]}},
                headers=USED,
            ),
            "fail",
            "priority level that is not there",
        ),
        (refused("no"), "skipped", "get flowcontrol.apiserver.k8s.io/flowschemas"),
    ],
    ids=["missing", "no queues", "another's", "dangling", "may not read"],
)
def test_the_queue_that_our_requests_go_through_is_named_by_the_answers(answer, state, said):
    environment = healthy()
    guarding(environment).queue = answer
    _, found = findings_by_check(environment)
    assert found["queue"]["state"] == state
    assert said in found["queue"]["says"]
