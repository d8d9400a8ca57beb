"""The order in which replacements are begun in a storm, and how many are under way at once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from plimsoll.domain.actions import Evict, Plan, Release
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.drain.deadline_evictions import MOST_EVICTIONS
from plimsoll.domain.drain.queued_replacements import LEAST_BEGUN_PODS, MOST_UNDER_WAY_PODS
from plimsoll.domain.observation import Observation
from tests.support.builders import a_pod
from tests.support.many_nodes import PODS, QUARTER, gone, storm
from tests.support.observations import actions, interrupted, noon


@cache
def first_plan(nodes: int = 60) -> Plan:
    return plan_drain(storm(nodes), noon(1))


def begun(seen: Observation) -> int:
    """Return how many replacements are begun by the first plan."""
    return len(actions(plan_drain(seen, noon(1)), Release))


def begun_of(plan: Plan) -> Counter[str]:
    """Return how many pods of each workload are released first."""
    releases = actions(plan, Release)
    return Counter(release.pod.name.rpartition("-")[0] for release in releases)


@pytest.mark.parametrize("nodes", [MOST_UNDER_WAY_PODS // PODS, 60], ids=["a few", "many"])
def test_as_many_are_begun_at_once_as_may_be_under_way(nodes):
    assert len(actions(first_plan(nodes), Release)) == MOST_UNDER_WAY_PODS
    in_turn = [
        words for words in first_plan(nodes).waiting[f"spot-{nodes - 1:03}"] if "in turn" in words
    ]
    assert bool(in_turn) is (nodes == 60)


def test_a_quarter_of_each_workload_is_begun_before_the_second_quarter_of_any():
    assert set(begun_of(first_plan(150)).values()) == {QUARTER}
    assert set(begun_of(first_plan()).values()) <= {QUARTER, 2 * QUARTER}


def test_whoever_stands_elsewhere_with_a_quarter_waits_for_those_that_do_not():
    nodes = MOST_UNDER_WAY_PODS // QUARTER + 1
    seen = storm(nodes)
    mine = [p for p in seen.pods if p.name.startswith("app-7-")][:QUARTER]
    moved = {p.name: replace(p, node="od") for p in mine}

    assert "app-7" not in begun_of(plan_drain(storm(nodes, moved), noon(1)))
    assert "app-7" in begun_of(first_plan(nodes))


def test_those_begun_stand_on_the_nodes_that_are_finished_first():
    nodes = Counter(r.pod.node for r in actions(first_plan(), Release))

    first, last = (sum(nodes[f"spot-{n:03}"] for n in part) for part in (range(30), range(30, 60)))
    assert first > 2 * last


def test_a_workload_of_higher_priority_comes_before_others():
    seen = storm(60)
    vital = [replace(p, priority=10) if p.name.startswith("app-59-") else p for p in seen.pods]
    plan = plan_drain(replace(seen, pods=vital), noon(1))

    assert sum(release.pod.priority == 10 for release in actions(plan, Release)) == PODS


def test_what_is_under_way_takes_of_the_bound_until_controllers_have_made_it():
    on_the_way = {r.pod.name: gone(r.pod) for r in actions(first_plan(), Release)}
    second = plan_drain(storm(60, on_the_way), noon(3))

    assert len(actions(second, Release)) == LEAST_BEGUN_PODS


def test_a_node_that_was_begun_is_finished_before_others():
    seen = storm(60)
    late = {p.name: gone(p) for p in seen.on_node["spot-055"][:-1]}
    plan = plan_drain(storm(60, late), noon(1))

    (left,) = seen.on_node["spot-055"][-1:]
    assert left.name in {release.pod.name for release in actions(plan, Release)[:70]}


def test_a_replacement_frees_the_pod_on_the_most_urgent_node():
    seen = storm(12)
    mine = [p for p in seen.pods if p.name.startswith("app-0-")]
    kept = {p.name: gone(p) for p in seen.pods if p in mine or p.node == mine[7].node}
    new = a_pod("app-0-new", node="od", labels=mine[0].labels, owner=("ReplicaSet", "app-0-abc"))
    seen = storm(12, kept)
    plan = plan_drain(replace(seen, pods=[*seen.pods, new]), noon(1))

    assert [evict.pod.name for evict in actions(plan, Evict)] == [mine[7].name]


def test_a_replacement_that_controllers_have_made_takes_nothing_of_the_bound():
    (pod,) = (p for p in storm(60).pods if p.name == "app-0-0")
    new = a_pod("app-0-new", node="od", labels=pod.labels, owner=("ReplicaSet", "app-0-abc"))
    seen = storm(60, {pod.name: gone(pod)})

    assert begun(seen) == MOST_UNDER_WAY_PODS - 1
    assert begun(replace(seen, pods=[*seen.pods, new])) == MOST_UNDER_WAY_PODS


@pytest.mark.parametrize(("selector", "queued"), [({}, 1), ({"disk": "ssd"}, 0)])
def test_a_replacement_that_kube_scheduler_could_place_takes_of_the_bound(selector, queued):
    (pod,) = (p for p in storm(60).pods if p.name == "app-0-0")
    new = a_pod(
        "app-0-new",
        labels=pod.labels,
        owner=("ReplicaSet", "app-0-abc"),
        created="2026-01-02T12:00:00Z",
        nodeSelector=selector,
    )
    seen = storm(60, {pod.name: gone(pod)})

    assert begun(replace(seen, pods=[*seen.pods, new])) == MOST_UNDER_WAY_PODS - queued


def test_what_an_owner_declares_takes_no_more_of_the_bound_than_was_begun_and_a_quarter_of_its_pods():
    seen = storm(60, {p.name: gone(p) for p in storm(60).pods if p.name == "app-0-0"})
    greedy = [replace(w, replicas=10**6) if w.ref.name == "app-0" else w for w in seen.workloads]

    assert begun(replace(seen, workloads=greedy)) == MOST_UNDER_WAY_PODS - 1 - QUARTER


def test_while_many_are_told_to_stop_hardly_another_replacement_is_begun():
    seen = storm(60)
    later = [
        replace(node, interruption=interrupted(node.name, ends=600).interruption)
        for node in seen.nodes[:30]
    ]
    plan = plan_drain(replace(seen, nodes=[*later, *seen.nodes[30:]]), noon(89))

    assert len(actions(plan, Evict)) == 30 * PODS
    assert len(actions(plan, Release)) == LEAST_BEGUN_PODS
    assert plan.expires is None


def test_a_plan_is_over_when_many_eviction_deadlines_come():
    assert first_plan().expires == noon(88)
    assert plan_drain(storm(60), noon(89)).expires is None  # it tells them
    assert plan_drain(storm(10), noon(1)).expires is None  # as many as are told at once


def test_whoever_is_replaced_leaves_before_another_replacement_is_begun():
    seen = storm(60)
    mine = [p for p in seen.pods if p.name.startswith("app-0-")]
    new = a_pod("app-0-new", node="od", labels=mine[0].labels, owner=("ReplicaSet", "app-0-abc"))
    seen = storm(60, {p.name: gone(p) for p in mine})
    plan = plan_drain(replace(seen, pods=[*seen.pods, new]), noon(1))

    first, second, *_ = plan.actions
    assert isinstance(first, Evict)
    assert isinstance(second, Release)


def test_on_the_nodes_with_the_fewest_pods_eviction_deadlines_come_first():
    seen = storm(60)
    left = {p.name: replace(p, node="od") for p in seen.on_node["spot-059"][:-1]}
    first, *_ = actions(plan_drain(storm(60, left), noon(89)), Evict)

    assert first.pod.node == "spot-059"


def test_eviction_deadlines_come_node_by_node_in_batches():
    plan = plan_drain(storm(MOST_EVICTIONS // PODS + 20), noon(90))
    last = actions(plan, Evict)

    assert len(last) == MOST_EVICTIONS
    assert set(Counter(evict.pod.node for evict in last).values()) == {PODS}
    assert plan.next_eviction == noon(90)  # the others are told by a plan that comes at once
