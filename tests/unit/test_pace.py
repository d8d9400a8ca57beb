"""The order in which replacements are begun in a storm, and how many are under way at once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from plimsoll.domain.actions import SURE, Evict, Pace, Release
from plimsoll.domain.actions.pace import FAST, LOWEST, START, STEP
from plimsoll.domain.disruptions.workload_disruption import START as TO_START
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.drain.throughput import MOST_EVICTIONS
from plimsoll.domain.observation import Observation
from tests.support.builders import a_pod
from tests.support.many_nodes import PODS, QUARTER, gone, storm
from tests.support.observations import actions, interrupted, noon


def test_a_few_nodes_are_begun_at_once():
    plan = plan_drain(storm(START // PODS), noon(1))

    assert len(actions(plan, Release)) == START


def begun_of(seen: Observation) -> Counter[str]:
    """Return how many pods of each workload are released first."""
    releases = actions(plan_drain(seen, noon(1)), Release)
    return Counter(release.pod.name.rpartition("-")[0] for release in releases)


def test_in_a_storm_as_many_are_begun_as_may_be_under_way():
    plan = plan_drain(storm(60), noon(1))

    assert len(actions(plan, Release)) == START
    assert any("in turn" in words for words in plan.waiting["spot-059"])


def test_a_quarter_of_each_workload_is_begun_before_the_second_quarter_of_any():
    assert set(begun_of(storm(150)).values()) == {QUARTER}
    assert set(begun_of(storm(60)).values()) <= {QUARTER, 2 * QUARTER}


def test_whoever_stands_elsewhere_with_a_quarter_waits_for_those_that_do_not():
    seen = storm(START // QUARTER + 1)
    mine = [p for p in seen.pods if p.name.startswith("app-7-")][:QUARTER]
    moved = {p.name: replace(p, node="od") for p in mine}

    assert "app-7" not in begun_of(storm(START // QUARTER + 1, moved))
    assert "app-7" in begun_of(seen)


def test_those_begun_stand_on_the_nodes_that_are_finished_first():
    nodes = Counter(r.pod.node for r in actions(plan_drain(storm(60), noon(1)), Release))

    first, last = (sum(nodes[f"spot-{n:03}"] for n in part) for part in (range(30), range(30, 60)))
    assert first > 2 * last


def test_a_workload_of_higher_priority_comes_before_others():
    seen = storm(60)
    vital = [replace(p, priority=10) if p.name.startswith("app-59-") else p for p in seen.pods]
    plan = plan_drain(replace(seen, pods=vital), noon(1))

    assert sum(release.pod.priority == 10 for release in actions(plan, Release)) == PODS


def test_what_is_under_way_takes_of_the_bound_until_controllers_have_made_it():
    seen = storm(60)
    first = plan_drain(seen, noon(1))
    on_the_way = {r.pod.name: gone(r.pod) for r in actions(first, Release)}
    second = plan_drain(
        storm(60, on_the_way), noon(3), pace=first.pace.begun(START, noon(1), throttled=False)
    )

    assert second.pace.queued == START
    assert len(actions(second, Release)) == SURE


def test_who_will_be_evicted_at_the_last_call_is_named_as_soon_as_the_rate_is_known():
    now = noon(30)
    lately = Pace(bound=START // 2, queued=10, at=noon(29))  # all ten were made in that second
    plan = plan_drain(storm(60), now, pace=lately)
    assert plan.pace.rate == 10

    late = {
        words.partition(" will be evicted at its eviction deadline, ")[0]: node
        for node, waits in plan.waiting.items()
        for words in waits
        if "will be evicted at its eviction deadline, " in words
    }
    pods = {str(pod): pod.node for pod in storm(60).pods}
    begun = {str(action.pod) for action in [*actions(plan, Release), *actions(plan, Evict)]}
    assert late.items() <= pods.items()
    assert not late.keys() & begun
    deadline = plan.next_eviction
    assert deadline is not None
    in_time = [n for n in range(600) if now + timedelta(seconds=n / 10) + TO_START <= deadline]
    assert len(late) == 600 - max(len(begun), len(in_time)) > 0
    (report,) = (r for r in plan.reports if r.node == "spot-005")
    assert late.keys() & {pod for pod, node in pods.items() if node == "spot-005"} == {
        pod for pod in late if any(f"wait: {pod} will be evicted" in r for r in report.reasons)
    }


def test_nobody_is_named_for_the_eviction_deadline_while_the_rate_is_not_known():
    plan = plan_drain(storm(60), noon(1))

    assert not any(
        "will be evicted at" in words for waits in plan.waiting.values() for words in waits
    )


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

    assert plan_drain(seen, noon(1)).pace.queued == 1
    assert plan_drain(replace(seen, pods=[*seen.pods, new]), noon(1)).pace.queued == 0


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

    assert plan_drain(replace(seen, pods=[*seen.pods, new]), noon(1)).pace.queued == queued


def test_what_an_owner_declares_takes_no_more_of_the_bound_than_was_begun_and_a_quarter_of_its_pods():
    seen = storm(60, {p.name: gone(p) for p in storm(60).pods if p.name == "app-0-0"})
    greedy = [replace(w, replicas=10**6) if w.ref.name == "app-0" else w for w in seen.workloads]

    assert plan_drain(replace(seen, workloads=greedy), noon(1)).pace.queued == 1 + QUARTER


def test_the_plan_says_early_who_will_be_evicted_at_the_last_call():
    slow = Pace(at=noon(3), rate=2.0)
    plan = plan_drain(storm(60), noon(3), pace=slow)
    fast = plan_drain(storm(60), noon(3), pace=replace(slow, rate=500.0))

    for pod in storm(60).on_node["spot-059"][1:]:
        assert any(f"{pod.name} will be evicted" in w for w in plan.waiting["spot-059"])
    assert any("12:01:28: at the present rate" in w for w in plan.waiting["spot-059"])
    assert not any("will be evicted" in w for w in fast.waiting["spot-059"])
    assert all(len(words) == len(set(words)) for words in plan.waiting.values())


def test_while_many_are_told_to_stop_hardly_another_replacement_is_begun():
    seen = storm(60)
    later = [
        replace(node, interruption=interrupted(node.name, ends=600).interruption)
        for node in seen.nodes[:30]
    ]
    plan = plan_drain(replace(seen, nodes=[*later, *seen.nodes[30:]]), noon(89))

    assert len(actions(plan, Evict)) == 30 * PODS
    assert len(actions(plan, Release)) == SURE
    assert plan.expires is None


def test_a_plan_is_over_when_many_last_calls_come():
    assert plan_drain(storm(60), noon(1)).expires == noon(88)
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


def test_on_the_nodes_with_the_fewest_pods_last_calls_come_first():
    seen = storm(60)
    left = {p.name: replace(p, node="od") for p in seen.on_node["spot-059"][:-1]}
    first, *_ = actions(plan_drain(storm(60, left), noon(89)), Evict)

    assert first.pod.node == "spot-059"


def test_last_calls_come_node_by_node_in_batches():
    plan = plan_drain(storm(MOST_EVICTIONS // PODS + 20), noon(90))
    last = actions(plan, Evict)

    assert len(last) == MOST_EVICTIONS
    assert set(Counter(evict.pod.node for evict in last).values()) == {PODS}
    assert plan.next_eviction == noon(90)  # the others are told by a plan that comes at once


@pytest.mark.parametrize(
    ("before", "found", "seconds", "bound"),
    [
        pytest.param(START, 0, 2, 2 * START, id="all made: it doubles"),
        pytest.param(START, START // 2, 2, START + STEP, id="half of it made: it rises"),
        pytest.param(START, START - 70, 2, START, id="slower, but none waits long: it stays"),
        pytest.param(START, START, 2, START, id="none made: it stays what it was at first"),
        pytest.param(
            3 * START, 3 * START - 20, 1, 3 * START // 2, id="twenty a second: it is halved"
        ),
        pytest.param(
            2 * START,
            2 * START - 35,
            1,
            35 * 15,
            id="thirty-five a second: it falls to fifteen seconds' work",
        ),
        pytest.param(
            LOWEST, LOWEST, 2, LOWEST, id="none made after a request for patience: it stays low"
        ),
        pytest.param(
            START, START, 0, START, id="seen twice in the same moment: nothing is learned"
        ),
    ],
)
def test_the_bound_follows_what_controllers_make(before, found, seconds, bound):
    pace = Pace(bound=before, queued=before, at=noon(0)).observed(found, noon(seconds))

    assert (pace.bound, pace.queued) == (bound, found)


def test_beyond_its_fast_rise_the_bound_rises_by_a_step_also_if_all_was_made():
    assert Pace(bound=FAST, queued=1, at=noon(0)).observed(0, noon(2)).bound == FAST + STEP


def test_the_bound_is_halved_when_the_api_server_asks_for_patience_and_has_an_end():
    pace = Pace().begun(0, noon(0), throttled=True)
    assert pace.bound == START // 2
    for _ in range(9):
        pace = pace.begun(0, noon(0), throttled=True)

    assert pace.bound == LOWEST


def test_the_time_before_a_queue_began_says_nothing_of_how_fast_controllers_are():
    waited = Pace(at=noon(0)).begun(START, noon(10), throttled=False)

    assert waited.observed(START - 60, noon(12)).rate == 30


def test_the_time_in_which_a_queue_had_run_dry_says_nothing_of_how_fast_controllers_are():
    waited = Pace(queued=20, at=noon(0), rate=20.0).begun(START, noon(8), throttled=False)

    assert waited.queued == 20 + START
    assert waited.observed(20 + START - 75, noon(10)).rate == pytest.approx((20 + 75 / 3) / 2)


def test_nothing_is_learned_from_observations_between_which_nothing_was_begun():
    assert Pace(at=noon(0)).observed(0, noon(2)) == Pace(at=noon(2))
