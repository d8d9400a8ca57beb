"""What a plan promises of nodes that come, for any groups, queues and gangs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from hypothesis import example, given
from hypothesis import strategies as st

from plimsoll.adapters.nodegroups import ASKED, KINDS
from plimsoll.domain.kubernetes import Node
from plimsoll.domain.node_groups import NodeGroup
from plimsoll_batch.domain.admission.decisions import QueuePlan
from plimsoll_batch.domain.admission.planner import plan_queues
from plimsoll_batch.domain.admission.queue_state import QueueState
from plimsoll_batch.domain.capacity.upcoming_nodes import Capacity
from plimsoll_batch.domain.jobs.gangs import Gang, Topology, amounts_of
from plimsoll_batch.domain.quota.cohorts import QueueConfiguration
from tests.support.builders import NOON
from tests.support.queued import (
    DEFAULT,
    GPU,
    a_cohort,
    a_configuration,
    a_gang,
    a_gpu_node,
    a_group_of_gpus,
    a_queue,
    a_shape,
)

ZONES = ("z1", "z2")
IN_ONE_ZONE = Topology(label="topology.kubernetes.io/zone", required=True)


class World(NamedTuple):
    configuration: QueueConfiguration
    gangs: list[Gang]
    nodes: list[Node]
    groups: list[NodeGroup]

    def planned(self) -> QueuePlan:
        nodes = self.nodes
        capacity = Capacity(cluster="harbor", groups=self.groups, nodes=nodes)
        seen = QueueState(
            configuration=self.configuration, gangs=self.gangs, nodes=nodes, capacity=capacity
        )
        return plan_queues(seen, NOON)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    nodes = [a_gpu_node(f"n{i}", draw(st.integers(1, 4))) for i in range(draw(st.integers(0, 3)))]
    groups = [
        a_group_of_gpus(
            f"g{i}",
            draw(st.integers(1, 4)),
            zones=draw(st.sampled_from((ZONES, ZONES[:1]))),
            desired=draw(st.integers(0, 2)),
            max_size=draw(st.integers(0, 8)),
            launchable=draw(st.booleans()),
        )
        for i in range(draw(st.integers(0, 3)))
    ]
    gangs = [
        a_gang(
            f"j{i}",
            draw(st.sampled_from("ab")),
            shape=a_shape(
                draw(st.integers(1, 3)),
                draw(st.integers(1, 6)),
                topology=draw(st.sampled_from((None, IN_ONE_ZONE))),
            ),
            priority=draw(st.integers(0, 2)),
            minute=-i,
        )
        for i in range(draw(st.integers(1, 5)))
    ]
    configuration = a_configuration(
        a_cohort(),
        a_queue("a", draw(st.integers(0, 20))),
        a_queue("b", draw(st.integers(0, 20)), borrow=draw(st.integers(0, 5))),
    )
    return World(configuration, gangs, nodes, groups)


@given(worlds())
def test_no_place_is_promised_twice_no_quota_is_exceeded_and_no_group_beyond_its_maximum(world):
    plan = world.planned()
    held: defaultdict[str, Counter[str]] = defaultdict(Counter)
    used: Counter[str] = Counter()
    for each in (*plan.admitted, *plan.awaiting):
        assert each.place is not None
        for pod, node in each.place.pods:
            held[node].update(amounts_of(pod.scheduling.requests, 1))
            used[each.gang.queue] += amounts_of(pod.scheduling.requests, 1)[GPU]
    whole = {node.name: amounts_of(node.allocatable, 1)[GPU] for node in world.nodes}
    largest = max((gpus_of(group) for group in world.groups), default=0)
    assert all(count[GPU] <= whole.get(node, largest) for node, count in held.items())
    quota = {queue.name: queue.quotas[DEFAULT, GPU] for queue in world.configuration.queues}
    assert used.total() <= sum(each.nominal for each in quota.values())
    limit = quota["b"].borrowing_limit
    assert limit is not None
    assert used["b"] <= quota["b"].nominal + limit
    assert asked_of(plan).items() <= {
        (group.key, add) for group in world.groups for add in range(group.addable_nodes + 1)
    }


@given(worlds())
def test_a_gang_is_promised_all_of_its_places_or_none_and_stands_in_one_decision(world):
    plan = world.planned()
    for each in (*plan.admitted, *plan.awaiting):
        assert each.place is not None
        for role in each.gang.shape.roles:
            assert sum(each.place.nodes[role.name].values()) == role.pods
    decided = [each.gang.uid for each in (*plan.admitted, *plan.awaiting, *plan.reserved)]
    decided += [gang.uid for each in plan.waiting for gang in each.gangs]
    assert sorted(decided) == sorted(gang.uid for gang in world.gangs)


def a_world(
    quota: tuple[int, int], gangs: Sequence[Gang], node: int, *groups: tuple[int, int, int]
) -> World:
    """A world of one node and groups of two zones, as GPUs, desired and maximum; queue `b` does not borrow."""
    configuration = a_configuration(
        a_cohort(), a_queue("a", quota[0]), a_queue("b", quota[1], borrow=0)
    )
    made = [
        a_group_of_gpus(f"g{n}", gpus, zones=ZONES, desired=desired, max_size=most)
        for n, (gpus, desired, most) in enumerate(groups)
    ]
    return World(configuration, list(gangs), [a_gpu_node("n0", node)], made)


REST_OF_A_COMING_NODE = a_world(
    (0, 8),
    [
        a_gang("j0", "a", shape=a_shape(1, 6), priority=1),
        a_gang("j1", "a", minute=-1),
        a_gang("j2", "a", minute=-2),
        a_gang("j3", "a", 2, minute=-3),
    ],
    2,
    (1, 2, 0),
    (2, 0, 2),
)
YOUNGER_ASKED_FIRST = a_world(
    (1, 10),
    [
        a_gang("j0", "b", shape=a_shape(2, 5)),
        *(a_gang(f"j{n}", "a", minute=-n) for n in (1, 2, 3)),
        a_gang("j4", "a", shape=a_shape(1, 2), minute=-4),
    ],
    4,
    (2, 0, 3),
    (1, 0, 1),
)
OLDER_WANTS_ONE_ZONE = a_world(
    (5, 4),
    [
        a_gang("j0", "b", shape=a_shape(2, 2)),
        a_gang("j1", "a", minute=-1),
        a_gang("j2", "a", shape=a_shape(1, 5, topology=IN_ONE_ZONE), minute=-2),
        a_gang("j3", "a", shape=a_shape(2, 3), minute=-3),
    ],
    2,
    (4, 0, 2),
)


@given(worlds())
@example(REST_OF_A_COMING_NODE)
@example(YOUNGER_ASKED_FIRST)
@example(OLDER_WANTS_ONE_ZONE)
def test_once_groups_have_promised_the_next_plan_asks_for_nothing_more(world):
    plan = world.planned()
    if plan.admitted:
        return  # what they take is not modelled here
    requests = {each.gang.uid: each.request for each in plan.awaiting if each.request}
    again = later(world).planned()
    # One comes before others now, and starts where a Ready node that was another's has room for it.
    there = {node.name for node in world.nodes}
    started = {
        e.gang.uid for e in again.admitted if e.place and {n for _, n in e.place.pods} <= there
    }
    assert started | {e.gang.uid for e in again.awaiting} >= requests.keys()
    assert not any(e.request for e in again.awaiting if e.gang.uid in requests)
    assert not again.given_up


def later(world: World) -> World:
    """The world once the groups have promised what a plan asked for."""
    plan = world.planned()
    asked, requests = asked_of(plan), {e.gang.uid: e.request for e in plan.awaiting if e.request}
    return world._replace(
        gangs=[
            replace(gang, nominated=True, request=replace(requests[gang.uid], answered=True))
            if gang.uid in requests
            else gang
            for gang in world.gangs
        ],
        groups=[replace(g, desired=g.desired + asked[g.key], asked=NOON) for g in world.groups],
    )


def awaited_by(plan: QueuePlan) -> list[tuple[str, bool]]:
    """Return who awaits nodes, and whether any are asked for it now."""
    return [(each.gang.name, each.request is not None) for each in plan.awaiting]


def test_a_gang_that_fits_on_the_rest_of_a_coming_node_starts_once_that_is_there():
    group = a_group_of_gpus("workers", 4, max_size=5)
    gangs = [a_gang("large", "a", 3), a_gang("small", "a", 1, minute=1)]
    world = World(a_configuration(a_cohort(), a_queue("a", 9)), gangs, [], [group])
    for plan in (world.planned(), later(world).planned()):
        assert plan.admitted == ()
        assert [name for name, _ in awaited_by(plan)] == ["large", "small"]
    there = later(world)._replace(nodes=[a_gpu_node("came", 4)], groups=[replace(group, desired=0)])
    assert [each.gang.name for each in there.planned().admitted] == ["large", "small"]


def test_a_group_that_makes_nodes_by_itself_is_never_promised():
    pool = replace(a_group_of_gpus("pool", 4, max_size=5), provisions=True)
    world = World(a_configuration(a_cohort(), a_queue("a", 9)), [a_gang("j", "a")], [], [pool])
    plan = world.planned()
    assert (plan.lacks_nodes, plan.awaiting) == (True, ())


def test_a_node_that_joined_a_moment_ago_may_still_lack_its_devices():
    """Its gang waits for ten minutes, and then asks anew."""
    group = a_group_of_gpus("workers", 4, max_size=5)
    world = World(a_configuration(a_cohort(), a_queue("a", 9)), [a_gang("j", "a")], [], [group])
    [first] = world.planned().awaiting
    assert first.request is not None
    request = replace(first.request, answered=True, at=NOON - timedelta(seconds=90))
    bare = replace(
        a_gpu_node("came", 0), instance="i-1", created=NOON - timedelta(seconds=60), zone="z1"
    )
    joined = replace(group, desired=1, instances=frozenset({"i-1"}))
    soon = World(
        world.configuration,
        [replace(world.gangs[0], request=request, nominated=True)],
        [bare],
        [joined],
    )
    plan = soon.planned()
    assert ([e.request for e in plan.awaiting], plan.given_up) == ([None], ())
    request = replace(request, at=request.at - timedelta(minutes=10))
    old = replace(bare, created=NOON - timedelta(minutes=11))
    late = World(
        world.configuration,
        [replace(world.gangs[0], request=request, nominated=True)],
        [old],
        [joined],
    )
    assert [each.request.attempts for each in late.planned().given_up] == [1]


def test_only_kinds_that_aws_knows_alone_are_asked():
    assert KINDS.keys() - ASKED.keys() == {"karpenter"}


def gpus_of(group: NodeGroup) -> int:
    assert group.template is not None
    return amounts_of(group.template.allocatable, 1)[GPU]


def asked_of(plan: QueuePlan) -> Counter[str]:
    found: Counter[str] = Counter()
    for each in plan.awaiting:
        if each.request is not None:
            found += each.request.sizes
    return found
