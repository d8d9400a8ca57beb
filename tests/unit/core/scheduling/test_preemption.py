"""Pods that kube-scheduler would preempt are headroom: balloons at once, others where no node comes in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.actions import Evict, Grow, Plan, Release, Uncordon
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.kubernetes import Pod, Workload
from plimsoll.domain.node_groups import NodeGroup
from plimsoll.domain.observation import Observation
from plimsoll.domain.scheduling.preemption import PreemptingSnapshot
from tests.support.builders import (
    ZONE_A,
    ZONE_B,
    a_budget,
    a_claim,
    a_deployment,
    a_group,
    a_node,
    a_pod,
    a_stateful_set,
    mounting,
    pods_of,
)
from tests.support.observations import actions, interrupted, looked, noon, sets_of

RECREATE = a_deployment(replicas=1, strategy={"type": "Recreate"})


def balloons(count: int, *, node: str = "od", **how: object) -> list[Pod]:
    """Return pods that fill the half of a node each, as a cluster-overprovisioner makes them."""
    how = {"cpu": "4", "priority": -10, "grace_seconds": 0, **how}
    return pods_of("balloon", count, node=node, **how)


def base(desired: int = 1, *, most: int = 1) -> NodeGroup:
    """Return the group of the node `od`."""
    return a_group("base", desired=desired, max_size=most, instances=[a_node("od").instance or ""])


def seen_with(
    pods: Sequence[Pod], *workloads: Workload, groups: Sequence[NodeGroup] = (), **how: object
) -> Observation:
    """Return an observation of the nodes `spot`, which is interrupted, and `od`."""
    nodes = [interrupted("spot", cpu="64"), a_node("od")]
    return looked(nodes, [*pods], [*workloads], groups=[*groups], **how)


def evicted(plan: Plan) -> list[str]:
    return [action.pod.name for action in actions(plan, Evict)]


@pytest.mark.parametrize(
    ("pods", "workload"),
    [
        (sets_of("db", ["spot"], cpu="3"), a_stateful_set(replicas=1)),
        (pods_of("web", 1, node="spot", cpu="3"), RECREATE),
    ],
    ids=["StatefulSet", "Recreate"],
)
def test_a_pod_that_cannot_run_twice_leaves_at_once_for_the_place_of_a_balloon(pods, workload):
    plan = plan_drain(seen_with([*pods, *balloons(2)], workload), noon(1))
    assert evicted(plan) == [pods[0].name]


def test_released_pods_have_headroom_where_balloons_stand():
    pods = pods_of("web", 2, node="spot", cpu="4")
    plan = plan_drain(seen_with([*pods, *balloons(2)], a_deployment(replicas=2)), noon(1))
    assert len(actions(plan, Release)) == 2
    assert not any("no headroom" in words for words in plan.waiting.get("spot", ()))


@pytest.mark.parametrize(
    ("mine", "theirs", "budgets"),
    [
        ({"preemptionPolicy": "Never"}, {}, ()),
        ({"priority": -10}, {}, ()),
        ({"priority": -5}, {}, ()),
        ({}, {"priority": 0}, ()),
        ({}, {"grace_seconds": 31}, ()),
        ({}, {}, (a_budget("balloon"),)),
        ({}, {}, [a_budget(f"other-{n}", allowed=1) for n in range(101)]),
        ({"cpu": "9"}, {}, ()),
    ],
    ids=[
        "it never preempts",
        "equal priorities",
        "only balloons are preempted at once, and they preempt nobody",
        "they serve somebody",
        "they may take long to stop",
        "their budget lets none go",
        "there are too many budgets to look at",
        "that is not enough",
    ],
)
def test_a_stateful_set_waits_where_nobody_makes_way(mine, theirs, budgets):
    pods = [*sets_of("db", ["spot"], **{"cpu": "3", **mine}), *balloons(2, **theirs)]
    plan = plan_drain(seen_with(pods, a_stateful_set(replicas=1), budgets=budgets), noon(1))
    assert evicted(plan) == []
    assert any("waits for headroom" in words for words in plan.waiting["spot"])


def test_of_balloons_as_many_make_way_as_their_budget_lets_go():
    pods = [
        *sets_of("db", ["spot"], cpu="4"),
        *pods_of("web", 1, node="spot", cpu="4"),
        *balloons(2),
    ]
    seen = seen_with(pods, a_stateful_set(replicas=1), RECREATE)
    assert len(evicted(plan_drain(seen, noon(1)))) == 2
    seen = replace(seen, budgets=[a_budget("balloon", allowed=1)])
    assert len(evicted(plan_drain(seen, noon(1)))) == 1


def test_capacity_is_asked_at_once_for_the_balloons_that_make_way_and_for_no_more():
    pods = [*sets_of("db", ["spot"], cpu="3"), *balloons(2)]
    groups = [base(most=5)]
    plan = plan_drain(seen_with(pods, a_stateful_set(replicas=1), groups=groups), noon(1))
    [grow] = actions(plan, Grow)
    assert (grow.group.name, grow.add) == ("base", 1)
    assert "default/balloon-1" in grow.reason
    assert "default/balloon-0" not in grow.reason
    assert evicted(plan) == ["db-0"]


def test_nobody_makes_way_for_a_pod_that_fits_beside():
    pods = [*sets_of("db", ["spot"], cpu="3"), *balloons(2)]
    seen = seen_with(pods, a_stateful_set(replicas=1), groups=[base(2, most=5)])
    plan = plan_drain(replace(seen, nodes=[*seen.nodes, a_node("free", cpu="4")]), noon(1))
    assert actions(plan, Grow) == []
    assert "its place on free" in actions(plan, Evict)[0].reason


def test_what_comes_is_for_the_others_before_it_is_for_balloons():
    large = [*pods_of("web", 1, node="spot", cpu="7"), *balloons(2, node="spot", cpu="7")]
    pods = [*large, *pods_of("other", 1, node="od", cpu="7")]
    plan = plan_drain(seen_with(pods, a_deployment(replicas=1), groups=[base(most=2)]), noon(1))
    [grow] = actions(plan, Grow)
    assert (grow.add, "headroom for default/web-0" in grow.reason) == (1, True)


def test_balloons_that_leave_do_not_wait_for_places_since_they_keep_nobody_from_one():
    spot, pods = interrupted("spot", cpu="64"), balloons(3, node="spot", cpu="5")
    workloads, groups = [a_deployment("balloon", replicas=3)], [a_group(desired=1, max_size=1)]
    plan = plan_drain(looked([spot], pods, workloads, groups=groups), noon(1))
    assert len(actions(plan, Release)) == 3


def test_two_that_want_the_place_of_one_balloon_do_not_both_leave():
    pods = [
        *sets_of("db", ["spot"], cpu="5"),
        *sets_of("store", ["spot"], cpu="5"),
        *balloons(1, cpu="8"),
    ]
    workloads = [a_stateful_set(replicas=1), a_stateful_set("store", replicas=1)]
    assert evicted(plan_drain(seen_with(pods, *workloads), noon(1))) == ["db-0"]


def test_balloons_that_are_pending_or_leave_take_no_place_from_others():
    waiting = [a_pod(f"balloon-{n}", cpu="4", priority=-10, grace_seconds=0) for n in (8, 9)]
    pods = [*sets_of("db", ["spot"], cpu="8"), *balloons(2), *waiting]
    assert evicted(plan_drain(seen_with(pods, a_stateful_set(replicas=1)), noon(1))) == ["db-0"]

    leaving = balloons(2, node="spot", cpu="7")
    pods = [*sets_of("db", ["spot"], cpu="8"), *leaving]
    workloads = [a_stateful_set(replicas=1), a_deployment("balloon", replicas=2)]
    assert evicted(plan_drain(seen_with(pods, *workloads), noon(1))) == ["db-0"]


def test_replacements_leave_the_place_of_a_balloon_near_a_volume_to_the_pod_that_mounts_it():
    mates = sets_of("db", ["full", "spot"], cpu="4", volumes=mounting("data"))
    mates[0] = replace(mates[0], ready=False)  # so that the other waits
    webs = pods_of("web", 4, node="spot", cpu="2")
    seen = seen_with(
        [*mates, *webs, *balloons(2), *pods_of("other", 1, node="elsewhere", cpu="8", priority=-1)],
        a_stateful_set(replicas=2),
        a_deployment(replicas=4),
        claims={("default", "data"): a_claim(zone=ZONE_A)},
    )
    others = [a_node("full", cpu="4"), a_node("elsewhere", zone=ZONE_B)]
    plan = plan_drain(replace(seen, nodes=[*seen.nodes, *others]), noon(1))
    assert len(actions(plan, Release)) == 2


@pytest.mark.parametrize(("priority", "opened"), [(0, 1), (-10, 0)])
def test_no_node_is_opened_again_for_a_balloon(priority, opened):
    advised = interrupted("spot", kind="rebalance-recommendation", ends=None)
    waiting = a_pod("waiting", cpu="7", priority=priority)
    seen = looked([advised, a_node("od", cpu="1")], [waiting], [a_deployment(replicas=1)])
    assert len(actions(plan_drain(seen, noon(600)), Uncordon)) == opened


sizes = st.integers(1, 4)
standing = st.lists(st.tuples(st.integers(0, 2), sizes, st.sampled_from((-10, 0))), max_size=6)
asking = st.lists(
    st.tuples(sizes, st.sampled_from((-10, 0)), st.booleans(), st.booleans()), max_size=8
)


@given(standing=standing, asking=asking)
def test_a_pod_has_a_place_if_it_fits_beside_those_that_do_not_make_way(standing, asking):
    pods = [
        a_pod(f"pod-{n}", node=f"node-{node}", cpu=str(cpu), priority=priority)
        for n, (node, cpu, priority) in enumerate(standing)
    ]
    snapshot = PreemptingSnapshot([a_node(f"node-{n}", cpu="6") for n in range(3)], pods)
    before = {name: snapshot.without_yielding.free(name).cpu >= 0 for name in snapshot.nodes}
    gone: set[str] = set()
    for n, (cpu, priority, never, leaves) in enumerate(asking):
        how = {"preemptionPolicy": "Never"} if never else {}
        pod = a_pod(f"new-{n}", cpu=str(cpu), priority=priority, **how)
        beside, makes_way = snapshot.candidates(pod), snapshot.open_to(pod).candidates(pod)
        node = snapshot.choose(pod)
        assert (node is None) == (not beside and not makes_way)
        if node is None:
            continue
        assert not beside or node in beside
        snapshot.place(pod, node.name)
        displaced = {each.uid for each in snapshot.take_displaced()}
        assert not (beside and displaced)
        assert not displaced or (priority == 0 and not never)
        gone |= displaced
        assert snapshot.why_not(pod, node) is None
        if leaves:
            snapshot.remove(pod)
    for name in snapshot.nodes:
        on = snapshot.on(name)
        assert gone.isdisjoint(pod.uid for pod in on)
        yielding = sum(p.scheduling.requests.cpu for p in on if snapshot.yields(p))
        rest = snapshot.without_yielding
        assert rest.free(name).cpu == snapshot.free(name).cpu + yielding
        assert (rest.free(name).cpu >= 0) == before[name]
        assert {p.uid for p in rest.on(name)} == {p.uid for p in on if not snapshot.yields(p)}
