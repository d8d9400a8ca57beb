"""Every answer of the eviction API, and the arithmetic of budgets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.hollows import (
    BUDGETS,
    DEPLOYMENTS,
    Play,
    a_budget,
    a_deployment,
    a_pod,
    a_stateful_set,
    a_template,
)


@pytest.fixture
def play() -> Play:
    play = Play()
    play.nodes("a", "b")
    return play


def figures(play: Play) -> tuple[int, ...]:
    status = play.get(f"{BUDGETS}/web")["status"]
    keys = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    return tuple(status[key] for key in keys)


def test_a_pod_without_a_budget_goes_and_carries_the_reason(play: Play):
    play.apply(a_pod("one"))
    play.wait(20)
    answer = play.evict("one")
    assert answer.status == 201
    assert answer.body["status"] == "Success"
    (pod,) = play.pods()
    assert "deletionTimestamp" in pod["metadata"]
    reasons = [c.get("reason") for c in pod["status"]["conditions"]]
    assert "EvictionByEvictionAPI" in reasons


def test_a_pod_that_does_not_exist_is_not_found(play: Play):
    answer = play.evict("nobody")
    assert (answer.status, answer.body["reason"]) == (404, "NotFound")


def test_a_uid_of_another_pod_of_that_name_is_a_conflict(play: Play):
    play.apply(a_pod("one"))
    play.wait(20)
    answer = play.evict("one", preconditions={"uid": "another"})
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert play.serving() == {"one"}


def test_a_spent_budget_answers_429_with_its_cause_and_no_retry_after(play: Play):
    play.apply(a_deployment("web", 2), a_budget("web", "web", maxUnavailable=0))
    play.wait(20)
    answer = play.evict(min(play.names()))
    assert answer.status == 429
    assert answer.body["reason"] == "TooManyRequests"
    (cause,) = answer.body["details"]["causes"]
    assert cause["reason"] == "DisruptionBudget"
    assert cause["message"] == "The disruption budget web needs 2 healthy pods and has 2 currently"
    assert "retry-after" not in answer.headers
    assert len(play.serving()) == 2


def test_a_budget_that_was_not_looked_at_yet_answers_429_with_retry_after(play: Play):
    play.apply(a_deployment("web", 2))
    play.wait(20)
    play.apply(a_budget("web", "web", maxUnavailable=1))
    answer = play.evict(min(play.names()))
    assert answer.status == 429
    assert answer.headers["retry-after"] == "10"
    assert answer.body["details"]["causes"][0]["reason"] == "DisruptionBudget"


def test_a_budget_is_charged_before_its_controller_has_seen_the_eviction(play: Play):
    play.apply(a_deployment("web", 3), a_budget("web", "web", maxUnavailable=1))
    play.wait(20)
    first, second, _ = sorted(play.names())
    assert play.evict(first).status == 201
    assert play.evict(second).status == 429
    play.wait(20)
    assert play.evict(second).status == 201


def test_two_budgets_on_a_pod_are_an_internal_error_that_says_so(play: Play):
    play.apply(
        a_deployment("web", 2),
        a_budget("web", "web", maxUnavailable=1),
        a_budget("more", "web", minAvailable=1),
    )
    play.wait(20)
    answer = play.evict(min(play.names()))
    assert answer.status == 500
    assert "more than one PodDisruptionBudget" in answer.body["message"]


@pytest.mark.parametrize(("policy", "expected"), [("IfHealthyBudget", 429), ("AlwaysAllow", 201)])
def test_an_unready_pod_below_the_budget_goes_only_by_always_allow(
    play: Play, policy: str, expected: int
):
    template = a_template("web", annotations={"never-ready": "true"})
    budget = a_budget("web", "web", minAvailable=1, unhealthyPodEvictionPolicy=policy)
    play.apply(a_deployment("web", 1, template), budget)
    play.wait(20)
    assert play.evict(min(play.names())).status == expected


def test_an_unready_pod_goes_when_enough_others_are_healthy(play: Play):
    play.apply(
        a_pod("sick", a_template("web", annotations={"never-ready": "true"})),
        a_pod("well", a_template("web")),
        a_budget("web", "web", minAvailable=1),
    )
    play.wait(20)
    assert play.evict("well").status == 429
    assert play.evict("sick").status == 201


def test_pending_and_going_pods_are_not_asked_about(play: Play):
    play.apply(a_pod("young"), a_budget("young", "young", maxUnavailable=0), a_pod("going"))
    play.wait(5)
    assert play.evict("young").status == 201
    play.wait(20)
    play.delete("going")
    play.apply(a_budget("going", "going", minAvailable=1))
    play.wait(0.1)
    assert play.evict("going").status == 201


def test_a_dry_run_changes_nothing(play: Play):
    play.apply(a_deployment("web", 2), a_budget("web", "web", maxUnavailable=1))
    play.wait(20)
    before = play.cluster.store.revision
    assert play.evict(min(play.names()), dryRun=["All"]).status == 201
    assert play.cluster.store.revision == before


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"maxUnavailable": 1}, (5, 4, 4, 0)),
        ({"maxUnavailable": "30%"}, (5, 3, 4, 1)),
        ({"minAvailable": 2}, (4, 2, 4, 2)),
        ({"minAvailable": "50%"}, (5, 3, 4, 1)),
    ],
)
def test_shares_are_of_what_is_wanted_and_a_whole_minimum_of_what_is_there(
    play: Play, rule: dict[str, Any], expected: tuple[int, ...]
):
    # Five are wanted by the set; the fifth does not come before the fourth is Ready.
    play.apply(a_stateful_set("web", 5), a_budget("web", "web", **rule))
    play.wait(15.1 * 4 + 1)
    assert len(play.serving()) == 4
    if "minAvailable" in rule and isinstance(rule["minAvailable"], int):
        expected = (5, *expected[1:])  # the fifth is there, not Ready yet
    assert figures(play) == expected


def test_the_temporary_pods_of_a_swap_count_in_a_budget(play: Play):
    play.apply(a_deployment("web", 1), a_budget("web", "web", maxUnavailable=0))
    play.wait(20)
    play.patch(f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 2}})
    play.wait(20)
    assert figures(play) == (2, 2, 2, 0)


def test_an_eviction_that_was_granted_and_never_seen_is_forgotten_after_two_minutes(play: Play):
    play.apply(a_deployment("web", 2), a_budget("web", "web", maxUnavailable=1))
    play.wait(20)
    name = min(play.names())
    granted = {"status": {"disruptedPods": {name: "2026-03-01T12:00:20Z"}}}
    play.patch(f"{BUDGETS}/web/status", granted)
    play.wait(1)
    assert figures(play) == (2, 1, 1, 0)
    play.wait(121)
    assert figures(play) == (2, 1, 2, 1)


def test_a_budget_that_is_deleted_or_changed_guards_no_longer(play: Play):
    play.apply(a_deployment("web", 2), a_budget("web", "web", maxUnavailable=0))
    play.wait(20)
    name = min(play.names())
    selector = {"spec": {"selector": {"matchLabels": {"app": "other"}}}}
    play.patch(f"{BUDGETS}/web", selector)
    play.wait(1)
    assert figures(play) == (0, 0, 0, 0)
    assert play.evict(name, dryRun=["All"]).status == 201
    play.call("DELETE", f"{BUDGETS}/web")
    play.wait(1)
    assert play.evict(name).status == 201
