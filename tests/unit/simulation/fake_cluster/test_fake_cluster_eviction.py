"""Every answer of the eviction API, and the arithmetic of budgets."""

from __future__ import annotations

from tests.support.fake_clusters import (
    BUDGETS,
    Play,
    a_budget,
    a_deployment,
)


def figures(play: Play) -> tuple[int, ...]:
    status = play.get(f"{BUDGETS}/web")["status"]
    keys = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    return tuple(status[key] for key in keys)


def test_a_budget_that_was_not_looked_at_yet_answers_429_with_retry_after(play: Play):
    play.apply(a_deployment("web", 2))
    play.wait(20)
    play.apply(a_budget("web", "web", maxUnavailable=1))
    answer = play.evict(min(play.names()))
    assert answer.status == 429
    assert answer.headers["retry-after"] == "10"
    assert answer.body["details"]["causes"][0]["reason"] == "DisruptionBudget"


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
