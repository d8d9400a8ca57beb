"""In an interruption of very many pods, eviction deadlines come node by node, and a plan lasts until they do."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from plimsoll.domain.actions import Evict, Release
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.drain.deadline_evictions import MOST_EVICTIONS
from plimsoll.domain.kubernetes import Pod
from plimsoll.domain.observation import Observation
from tests.support.builders import a_pod
from tests.support.many_nodes import PODS, gone, storm
from tests.support.observations import actions, interrupted, noon

DEADLINE = 89
"""Seconds from the notice until the eviction deadlines of these pods have come."""


def with_a_replacement(seen: Observation, of: Pod) -> Observation:
    """Return what is seen once a replacement of this pod is Ready."""
    new = a_pod("app-0-new", node="od", labels=of.labels, owner=("ReplicaSet", "app-0-abc"))
    return replace(seen, pods=[*seen.pods, new])


def test_a_plan_is_over_when_many_eviction_deadlines_come():
    assert plan_drain(storm(60), noon(1)).expires == noon(88)
    assert plan_drain(storm(60), noon(DEADLINE)).expires is None  # it evicts them
    assert plan_drain(storm(10), noon(1)).expires is None  # as many as are evicted at once


def test_pods_are_evicted_at_their_deadline_before_others_are_released():
    seen = storm(60)
    later = [
        replace(node, interruption=interrupted(node.name, ends=600).interruption)
        for node in seen.nodes[:30]
    ]
    plan = plan_drain(replace(seen, nodes=[*later, *seen.nodes[30:]]), noon(DEADLINE))

    first = plan.actions[: 30 * PODS]
    assert all(isinstance(action, Evict) for action in first)
    assert len(actions(plan, Release)) == 30 * PODS


def test_a_replacement_frees_the_pod_on_the_most_urgent_node():
    seen = storm(12)
    mine = [p for p in seen.pods if p.name.startswith("app-0-")]
    kept = {p.name: gone(p) for p in seen.pods if p in mine or p.node == mine[7].node}
    plan = plan_drain(with_a_replacement(storm(12, kept), mine[0]), noon(1))

    assert [evict.pod.name for evict in actions(plan, Evict)] == [mine[7].name]


def test_whoever_is_replaced_leaves_before_another_replacement_is_begun():
    mine = [p for p in storm(60).pods if p.name.startswith("app-0-")]
    seen = storm(60, {p.name: gone(p) for p in mine})
    plan = plan_drain(with_a_replacement(seen, mine[0]), noon(1))

    first, second, *_ = plan.actions
    assert isinstance(first, Evict)
    assert isinstance(second, Release)


def test_on_the_nodes_with_the_fewest_pods_eviction_deadlines_come_first():
    seen = storm(60)
    left = {p.name: replace(p, node="od") for p in seen.on_node["spot-059"][:-1]}
    first, *_ = actions(plan_drain(storm(60, left), noon(DEADLINE)), Evict)

    assert first.pod.node == "spot-059"


def test_eviction_deadlines_come_node_by_node_in_batches():
    plan = plan_drain(storm(MOST_EVICTIONS // PODS + 20), noon(90))
    last = actions(plan, Evict)

    assert len(last) == MOST_EVICTIONS
    assert set(Counter(evict.pod.node for evict in last).values()) == {PODS}
    assert plan.next_eviction == noon(90)  # the others are evicted by a plan that comes at once


def test_each_node_is_told_of_its_own_pods_without_headroom_in_a_line_for_each_workload():
    seen = storm(60)
    small = [replace(node, unschedulable=True) for node in seen.nodes]
    plan = plan_drain(replace(seen, nodes=small), noon(1))

    (report, *_) = plan.reports
    lacking = [reason for reason in report.reasons if reason.verb == "no headroom for"]
    here = {str(pod) for pod in seen.pods if pod.node == report.node}
    assert {pod for reason in lacking for pod in reason.pods} == here
    assert len({reason.about for reason in lacking}) == len(lacking)
