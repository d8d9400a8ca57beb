"""What the cluster holds against a storm: webhooks, quotas and budgets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.builders import budget_json
from tests.support.doctor import findings_by_check, guarding, healthy


def a_webhook(resource: str, *operations: str, group: str = "", **how: Any) -> dict[str, Any]:
    rule = {"apiGroups": [group], "resources": [resource], "operations": operations}
    return {"name": "guard.example.com", "rules": [rule], **how}


def holding(plural: str, *objects: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what is found of a healthy cluster that has these objects."""
    environment = healthy()
    guarding(environment).lists[plural] = objects
    status, found = findings_by_check(environment)
    assert status == 0
    return found


def a_quota(used: str, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "tight", "namespace": "default"},
        "spec": spec,
        "status": {"hard": {"pods": "3"}, "used": {"pods": used}},
    }


@pytest.mark.parametrize(
    ("hook", "says"),
    [
        (a_webhook("pods/eviction", "CREATE", timeoutSeconds=30), "refuses them where it fails"),
        (a_webhook("*/*", "*"), "asked about evictions, and refuses them"),
        (a_webhook("pods/eviction", "CREATE", failurePolicy="Ignore"), "longer than 10 s"),
        (a_webhook("pods", "CREATE"), "new and changed pods, and refuses them"),
        (a_webhook("pods", "CREATE", failurePolicy="Ignore"), None),
        (a_webhook("pods", "DELETE"), None),
        (a_webhook("pods/eviction", "CREATE", group="policy.example.com"), None),
        (a_webhook("deployments", "*", group="apps"), None),
    ],
)
def test_a_webhook_on_evictions_or_pods_is_named_with_its_failure_policy_and_time(hook, says):
    environment = healthy()
    guarding(environment).lists["validatingwebhookconfigurations"] = [{"webhooks": [hook]}]
    status, found = findings_by_check(environment)
    told = found.get("webhook guard.example.com")
    assert (told is None) == (says is None)
    assert ("webhooks" in found) == (says is None)
    assert told is None or (says in told["says"] and "failurePolicy: Ignore" in told["cure"])
    assert status == 0


@pytest.mark.parametrize(
    ("quota", "told"),
    [
        (a_quota("3"), True),
        (a_quota("2"), False),
        (a_quota("3", scopes=["NotTerminating"]), True),
        (a_quota("3", scopes=["Terminating"]), False),
    ],
)
def test_a_quota_without_headroom_for_one_more_pod_is_named_where_it_binds_the_pod(quota, told):
    found = holding("resourcequotas", quota)
    assert ("ResourceQuota default/tight" in found) == told
    assert ("quotas" in found) != told


@pytest.mark.parametrize(
    ("budgets", "says"),
    [
        ([budget_json("web", allowed=0)], "lets none go"),
        ([budget_json("web", allowed=1)], None),
        ([budget_json("other", allowed=0)], None),
        (
            [budget_json(name, allowed=1, selector={}) for name in ("web", "all")],
            "PodDisruptionBudget default/all covers too",
        ),
    ],
)
def test_a_budget_that_never_lets_a_pod_go_is_named(budgets, says):
    found = holding("poddisruptionbudgets", *budgets)
    told = found.get("PodDisruptionBudget default/web")
    assert (told is None) == (says is None) == ("budgets" in found)
    assert told is None or says in told["says"]
