"""In an interruption of more pods than an API server evicts in time, some are evicted before their eviction deadline."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from plimsoll.domain.actions import Evict
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.drain.deadline_evictions import (
    AT_ONCE,
    EARLIEST,
    EVICTIONS_PER_SECOND,
    MOST_EVICTIONS,
)
from plimsoll.domain.observation import Observation
from tests.support.builders import a_budget
from tests.support.many_nodes import PODS, storm
from tests.support.observations import actions, noon

STOP = 10
"""The grace period of these pods, in seconds."""
DEADLINE = 108
"""Seconds from the notice to their eviction deadline."""
LEFT = 5
"""Seconds before it: the API server evicts fewer than six hundred pods in that time."""
EARLY = 60 * PODS - AT_ONCE - LEFT * EVICTIONS_PER_SECOND
"""How many of the pods on sixty nodes it would then evict too late."""


def brief(nodes: int) -> Observation:
    """Return an interruption of pods that stop soon."""
    return storm(nodes, grace_seconds=STOP)


def evicted(seen: Observation, *, left: int = LEFT) -> list[Evict]:
    """Return the evictions of a plan that is made so many seconds before the eviction deadlines."""
    return actions(plan_drain(seen, noon(DEADLINE - left)), Evict)


def test_a_pod_is_evicted_early_if_the_api_server_would_not_take_all_evictions_in_time():
    early = evicted(brief(60))

    assert len(early) == EARLY
    assert "comes at 12:01:48" in early[0].reason
    assert not any(evict.overrule or evict.grace_seconds for evict in early)


def test_none_is_evicted_early_where_the_api_server_takes_all_in_time():
    assert evicted(brief(60), left=-(-60 * PODS // EVICTIONS_PER_SECOND)) == []
    assert evicted(brief(AT_ONCE // PODS), left=1) == []


def test_none_is_evicted_long_before_its_own_deadline():
    seen = brief((AT_ONCE + 50 * EVICTIONS_PER_SECOND) // PODS)

    assert evicted(seen, left=int(EARLIEST.total_seconds()) + 2) == []
    assert evicted(seen, left=int(EARLIEST.total_seconds()))


def test_the_last_pod_that_serves_is_not_evicted_before_its_deadline():
    early = evicted(brief(MOST_EVICTIONS // PODS + 40), left=1)

    assert len(early) == MOST_EVICTIONS
    assert max(Counter(e.pod.owner.name for e in early if e.pod.owner).values()) < PODS


def test_those_on_the_nodes_with_the_fewest_pods_are_evicted_first():
    seen = brief(61)
    left = {p.name: replace(p, node="od") for p in seen.on_node["spot-007"][:-2]}

    first, second, *others = evicted(storm(61, left, grace_seconds=STOP))

    assert {first.pod.node, second.pod.node} == {"spot-007"}
    assert set(Counter(e.pod.node for e in others[: PODS * 10]).values()) == {PODS}


def test_a_budget_is_not_overruled_before_the_eviction_deadline():
    seen = brief(60)
    none = a_budget("app-3", maxUnavailable=0)

    owners = {e.pod.owner.name for e in evicted(replace(seen, budgets=[none])) if e.pod.owner}
    assert "app-3-abc" not in owners
    assert "app-4-abc" in owners


def test_what_may_end_by_itself_is_not_evicted_before_its_deadline():
    seen = brief(60)
    jobs = [replace(p, restarts=False) if p.name.startswith("app-3-") else p for p in seen.pods]

    assert not any(e.pod.name.startswith("app-3-") for e in evicted(replace(seen, pods=jobs)))


def test_each_node_is_told_of_its_own_pods_without_headroom_in_a_line_for_each_workload():
    seen = brief(60)
    small = [replace(node, unschedulable=True) for node in seen.nodes]
    plan = plan_drain(replace(seen, nodes=small), noon(1))

    (report, *_) = plan.reports
    lacking = [reason for reason in report.reasons if reason.verb == "no headroom for"]
    here = {str(pod) for pod in seen.pods if pod.node == report.node}
    assert {pod for reason in lacking for pod in reason.pods} == here
    assert len({reason.about for reason in lacking}) == len(lacking)
