"""Every answer of the eviction API, and the arithmetic of budgets."""

from __future__ import annotations

import pytest

from tests.support.hollows import (
    BUDGETS,
    Play,
    a_budget,
    a_deployment,
    a_pod,
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


def test_pending_and_going_pods_are_not_asked_about(play: Play):
    play.apply(a_pod("young"), a_budget("young", "young", maxUnavailable=0), a_pod("going"))
    play.wait(5)
    assert play.evict("young").status == 201
    play.wait(20)
    play.delete("going")
    play.apply(a_budget("going", "going", minAvailable=1))
    play.wait(0.1)
    assert play.evict("going").status == 201


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
