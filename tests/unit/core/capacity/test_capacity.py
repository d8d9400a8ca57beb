"""Groups grow by what the unschedulable pods need, no more, and only where it is of use."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.capacity import plan_growth
from plimsoll.domain.capacity.growth_plan import GrowthPlan
from plimsoll.domain.interruptions import Interruption, NoticeRecord
from plimsoll.domain.kubernetes import Node, Pod, Taint, replacement_of
from plimsoll.domain.node_groups import (
    GroupMaximum,
    InsufficientCapacity,
    LaunchesThrottled,
    LaunchTemplateBroken,
    NodeGroup,
    NoFreeAddresses,
    OtherRefusal,
    VcpuQuota,
)
from plimsoll.domain.scheduling import ClusterSnapshot
from tests.support.builders import (
    NOON,
    ZONE_A,
    ZONE_B,
    ZONE_C,
    a_claim,
    a_group,
    a_node,
    a_pod,
    mounting,
    pods_of,
)
from tests.support.cluster_strategies import Shortage, shortages

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def grow(snapshot: ClusterSnapshot, pods: list[Pod], *groups: NodeGroup, **how: Any) -> GrowthPlan:
    return plan_growth(snapshot, pods, groups, **{"upcoming": {}, "now": NOON, **how})


def asked(plan: GrowthPlan) -> dict[tuple[str, str | None], int]:
    return {(g.group.name, g.zone): g.add for g in plan.growths}


def total(plan: GrowthPlan) -> int:
    return sum(g.add for g in plan.growths)


def empty() -> ClusterSnapshot:
    return ClusterSnapshot([], [])


def spread_over(key: str) -> dict[str, Any]:
    rule = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    return {"topologySpreadConstraints": [rule]}


REBALANCE = "rebalance-recommendation"


def a_reclaimed_node(zone: str) -> Node:
    """A spot node of the type of `a_group` that is interrupted."""
    notice = NoticeRecord(kind="spot-interruption", time=NOON, id="1")
    told = Interruption(instance="i-0a", launched=None, node="s", notices=(notice,))
    node = a_node("s", instance="i-0a", unschedulable=True, zone=zone)
    labels = {**node.labels, "node.kubernetes.io/instance-type": "m6i.2xlarge"}
    return replace(node, interruption=told, labels=labels, capacity="spot")


class TestRoomThatIsThere:
    def test_nothing_is_asked_for_what_fits_on_the_nodes_that_stay(self):
        snapshot = ClusterSnapshot([a_node("a"), a_node("b")], [])
        plan = grow(snapshot, pods_of("web", 4, cpu="1"), a_group())
        assert not plan.growths
        assert Counter(plan.placed.values()) == {"a": 2, "b": 2}

    def test_an_unschedulable_pod_that_still_stands_somewhere_is_moved_and_its_replacement_is_not(
        self,
    ):
        old = a_pod("web-1", node="a", cpu="6")
        snapshot = ClusterSnapshot([a_node("a", cpu="6")], [old])
        assert grow(snapshot, [old]).placed == {old.uid: "a"}
        fresh = replacement_of(old)
        assert (fresh.uid, fresh.node, fresh.serving) == (f"new:{old.uid}", None, False)
        assert list(grow(snapshot, [fresh]).unplaceable) == [fresh.uid]

    def test_the_board_is_left_as_it_was(self):
        node = a_node("a")
        snapshot = ClusterSnapshot([node], [])
        grow(snapshot, pods_of("web", 20, cpu="1"), a_group())
        assert (list(snapshot.nodes), snapshot.free("a")) == (["a"], node.allocatable)

    def test_priority_comes_first_when_not_all_can_be_saved(self):
        low, high = a_pod("low", cpu="6"), a_pod("high", cpu="6", priority=1000)
        plan = grow(ClusterSnapshot([a_node("a")], []), [low, high])
        assert plan.placed == {high.uid: "a"}
        assert list(plan.unplaceable) == [low.uid]

    def test_of_equal_priority_the_larger_comes_first_by_cpu_and_memory_together(self):
        small, large = a_pod("a", cpu="3", memory="1Gi"), a_pod("b", cpu="6", memory="24Gi")
        plan = grow(ClusterSnapshot([a_node("a")], []), [small, large])
        assert plan.placed == {large.uid: "a"}


class TestSmallestChange:
    @pytest.mark.parametrize(("count", "nodes"), [(1, 1), (4, 1), (5, 2), (8, 2), (9, 3)])
    def test_like_pods_get_as_many_nodes_as_they_fill(self, count, nodes):
        plan = grow(empty(), pods_of("web", count, cpu="2"), a_group(max_size=10))
        assert total(plan) == nodes
        assert len(plan.placed) == count

    @pytest.mark.parametrize("pinned", [True, False])
    def test_daemon_pods_take_their_room_on_new_nodes_too(self, pinned):
        here = {"key": "metadata.name", "operator": "In", "values": ["a"]}
        terms = {"nodeSelectorTerms": [{"matchFields": [here]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        agent = a_pod(
            "agent-a",
            owner=("DaemonSet", "agent"),
            node="a",
            cpu="1",
            affinity={"nodeAffinity": required} if pinned else {},
        )
        snapshot = ClusterSnapshot([a_node("a", cpu="1")], [agent])
        assert total(grow(snapshot, pods_of("web", 4, cpu="2"), a_group())) == 2

    def test_the_group_with_the_least_waste_is_chosen(self):
        small, large = a_group("small", cpu="2"), a_group("large", cpu="16")
        assert asked(grow(empty(), pods_of("web", 1, cpu="2"), small, large)) == {
            ("small", ZONE_A): 1
        }
        assert [
            g.group.name for g in grow(empty(), pods_of("web", 8, cpu="2"), small, large).growths
        ] == ["large"]

    def test_waste_is_the_share_of_a_node_that_is_left_and_not_the_amount(self):
        even, lean = a_group("even", cpu="2", memory="16Gi"), a_group("lean", memory="8Gi")
        pods = pods_of("web", 1, cpu="1", memory="8Gi")
        assert asked(grow(empty(), pods, even, lean)) == {("lean", ZONE_A): 1}

    def test_new_nodes_are_dealt_over_the_zones(self):
        plan = grow(empty(), pods_of("web", 4, cpu="6"), a_group())
        assert asked(plan) == {("base", ZONE_A): 2, ("base", ZONE_B): 2}

    def test_groups_of_two_kinds_with_one_name_are_two_groups(self):
        ours, theirs = a_group(max_size=1), a_group(kind="eks-nodegroup", max_size=1)
        pods = pods_of("web", 2, cpu="6")
        told = GroupMaximum(at=NOON, why="full")

        def kinds(**known) -> list[str]:
            plan = grow(empty(), pods, ours, theirs, **known)
            return sorted(growth.group.kind for growth in plan.growths)

        assert kinds() == ["asg", "eks-nodegroup"]
        assert kinds(refusals={"asg/base": [told]}) == ["eks-nodegroup"]
        assert kinds(upcoming={("asg/base", None): 1}) == ["eks-nodegroup"]

    def test_an_ask_says_for_whom_and_why(self):
        snapshot = ClusterSnapshot([a_node("a", cpu="1"), a_node("b", unschedulable=True)], [])
        (growth,) = grow(snapshot, pods_of("web", 2, cpu="2"), a_group()).growths
        assert (growth.group.kind, growth.pods) == ("asg", ("default/web-0", "default/web-1"))
        assert growth.reason == (
            "headroom for 2 pods, the first default/web-0 (0/2 nodes are available:"
            " 1 Insufficient cpu, 1 node(s) were unschedulable)"
        )


class TestWhichGroups:
    def test_on_demand_comes_before_spot_and_spot_takes_the_rest(self):
        base = a_group("base", max_size=1, cpu="2")
        spot = a_group("a-spot", capacity="spot", zones=[ZONE_A], cpu="2")
        plan = grow(empty(), pods_of("web", 3, cpu="2"), base, spot)
        assert asked(plan) == {("base", ZONE_A): 1, ("a-spot", ZONE_A): 2}

    def test_a_group_never_grows_above_its_maximum(self):
        group = a_group(desired=3, max_size=5)
        plan = grow(empty(), pods_of("web", 4, cpu="8"), group)
        assert total(plan) == 2
        assert len(plan.unplaceable) == 2
        assert "base: at its maximum of 5 nodes" in next(iter(plan.unplaceable.values()))

    def test_pods_that_no_group_can_take_are_named_with_the_reason(self):
        big, picky = a_pod("big", cpu="64"), a_pod("picky", nodeSelector={"disk": "ssd"})
        dark = replace(a_group("dark"), template=None)
        tainted = a_group("tainted", taints=[Taint(key="gpu", value="yes")])
        plan = grow(empty(), [big, picky], a_group(), dark, tainted)
        assert not plan.growths
        assert plan.unplaceable[big.uid] == (
            "0/0 nodes are available; base: its nodes are too small; dark: nothing tells what its"
            " nodes would be; tainted: node(s) had untolerated taint {gpu: yes}"
        )
        assert "didn't match Pod's node affinity/selector" in plan.unplaceable[picky.uid]
        alone = grow(empty(), [big]).unplaceable[big.uid]
        assert alone == "0/0 nodes are available; there is no group that could grow"

    def test_what_was_refused_is_asked_again_after_a_moment_and_at_first_only_as_last_resort(self):
        pod, spot = [a_pod()], a_group("spot", capacity="spot")

        def refused(seconds: int, zone: str | None, *groups: NodeGroup) -> GrowthPlan:
            told = OtherRefusal(at=NOON - timedelta(seconds=seconds), why="no", zone=zone)
            return grow(empty(), pod, *groups, refusals={"asg/base": [told]})

        assert asked(refused(0, ZONE_A, a_group())) == {("base", ZONE_B): 1}
        assert "base: refused lately" in refused(10, None, a_group()).unplaceable[pod[0].uid]
        assert asked(refused(20, None, a_group())) == {("base", ZONE_A): 1}
        assert asked(refused(20, None, a_group(), spot)) == {("spot", ZONE_A): 1}
        assert asked(refused(200, None, a_group(), spot)) == {("base", ZONE_A): 1}

    def test_a_group_that_cannot_be_steered_is_avoided_only_as_a_whole(self):
        group = a_group(launchable=False)
        one, other = (OtherRefusal(at=NOON, why="no", zone=zone) for zone in (ZONE_A, ZONE_B))
        assert grow(empty(), [a_pod()], group, refusals={"asg/base": [one]}).growths
        assert not grow(empty(), [a_pod()], group, refusals={"asg/base": [one, other]}).growths

    @pytest.mark.parametrize(
        ("kind", "launchable", "zones", "expected"),
        [
            (REBALANCE, True, (ZONE_A, ZONE_B), {("spot", ZONE_B): 2}),
            (REBALANCE, True, (ZONE_A,), {("other", ZONE_A): 1, ("spot", ZONE_A): 1}),
            (REBALANCE, False, (ZONE_A, ZONE_B), {("spot", None): 2}),
            ("health-scheduled-change", True, (ZONE_A,), {("spot", ZONE_A): 2}),
            ("lifecycle-terminate", True, (ZONE_A,), {("spot", ZONE_A): 2}),
            ("scale-down", True, (ZONE_A,), {("spot", ZONE_A): 2}),
        ],
    )
    def test_a_capacity_pool_that_is_reclaimed_is_asked_only_as_the_last_resort(
        self, kind, launchable, zones, expected
    ):
        notice = NoticeRecord(kind=kind, time=NOON, id="1")
        interruption = Interruption(instance="i-0a", launched=None, node="s", notices=(notice,))
        interrupted = replace(
            a_node("s", instance="i-0a", unschedulable=True), interruption=interruption
        )
        spot = a_group(
            "spot", capacity="spot", zones=zones, instances=["i-0a"], launchable=launchable
        )
        other = a_group("other", capacity="spot", zones=[ZONE_A], max_size=int(len(expected) > 1))
        pods = pods_of("web", 2, cpu="8")
        assert asked(grow(ClusterSnapshot([interrupted], []), pods, spot, other)) == expected

    def test_of_spot_groups_another_family_comes_before_a_sibling_of_what_is_reclaimed(self):
        seen = ClusterSnapshot([a_reclaimed_node(ZONE_A)], [])
        sibling = a_group("a-sibling", capacity="spot", zones=[ZONE_B])
        other = replace(
            a_group("other", capacity="spot", zones=[ZONE_A]), instance_types=("r5.2xlarge",)
        )
        assert asked(grow(seen, [a_pod()], sibling, other)) == {("other", ZONE_A): 1}

    def test_one_interruption_of_a_diversified_group_bars_only_its_pool(self):
        seen = ClusterSnapshot([a_reclaimed_node(ZONE_A)], [])
        mixed = replace(
            a_group("mixed", capacity="spot", instances=["i-0a"], launchable=False),
            instance_types=("m6i.2xlarge", "c5.2xlarge", "r5.2xlarge"),
        )
        pool = a_group("a-pool", capacity="spot", zones=[ZONE_A])
        assert asked(grow(seen, [a_pod()], mixed, pool)) == {("mixed", None): 1}

    def test_spot_of_another_family_is_asked_where_on_demand_is_refused(self):
        told = InsufficientCapacity(at=NOON, why="none")
        base = a_group()
        same = a_group("same", zones=[ZONE_A])
        spot = replace(a_group("spot", capacity="spot"), instance_types=("r5.2xlarge",))
        refusals = {"asg/base": [told]}
        assert asked(grow(empty(), [a_pod()], base, same, spot, refusals=refusals)) == {
            ("spot", ZONE_A): 1
        }

    def test_a_quota_is_of_all_groups_whose_types_it_counts(self):
        told = VcpuQuota(at=NOON - timedelta(seconds=20), why="none")
        standard, gpu = (
            replace(a_group(name), instance_types=(of,))
            for name, of in (("c-group", "c5.2xlarge"), ("g-group", "g5.2xlarge"))
        )
        refusals = {"asg/base": [told]}
        assert asked(grow(empty(), [a_pod()], a_group(), standard, gpu, refusals=refusals)) == {
            ("g-group", ZONE_A): 1
        }

    @pytest.mark.parametrize(
        ("refusal", "expected"),
        [
            (InsufficientCapacity, {("other", ZONE_A): 1}),
            (NoFreeAddresses, {("base", ZONE_B): 1}),
            (LaunchTemplateBroken, {("other", ZONE_A): 1}),
            (GroupMaximum, {("other", ZONE_A): 1}),
            (LaunchesThrottled, {("base", ZONE_A): 1}),
        ],
    )
    def test_what_else_a_refusal_rules_out_follows_from_its_type(self, refusal, expected):
        everywhere = {InsufficientCapacity, LaunchTemplateBroken, GroupMaximum}
        told = refusal(at=NOON, why="no", zone=None if refusal in everywhere else ZONE_A)
        other = replace(a_group("other"), instance_types=("r5.2xlarge",))
        plan = grow(empty(), [a_pod()], a_group(), other, refusals={"asg/base": [told]})
        assert asked(plan) == expected

    def test_as_the_last_resort_what_is_avoided_is_asked_too(self):
        told = [
            kind(at=NOON - timedelta(seconds=20), why="no")
            for kind in (InsufficientCapacity, VcpuQuota, NoFreeAddresses, LaunchTemplateBroken)
        ]
        assert asked(grow(empty(), [a_pod()], a_group(), refusals={"asg/base": told})) == {
            ("base", ZONE_A): 1
        }


class TestZones:
    def test_a_volume_draws_the_new_node_into_its_zone(self):
        snapshot = ClusterSnapshot([], [], {("default", "data"): a_claim("data", zone=ZONE_B)})
        plan = grow(snapshot, [a_pod(volumes=mounting("data"))], a_group())
        assert asked(plan) == {("base", ZONE_B): 1}

    def test_a_volume_in_a_zone_of_no_group_is_named(self):
        snapshot = ClusterSnapshot([], [], {("default", "data"): a_claim("data", zone=ZONE_C)})
        pod = a_pod(volumes=mounting("data"))
        plan = grow(snapshot, [pod], a_group())
        assert "base: node(s) had volume node affinity conflict" in plan.unplaceable[pod.uid]

    def test_a_volume_that_no_new_node_mounts_asks_for_no_larger_maximum(self):
        claim = a_claim("data", zone=ZONE_C)
        snapshot = ClusterSnapshot([], [], {("default", "data"): claim})
        full = a_group(desired=5, max_size=5)
        pod = a_pod(volumes=mounting("data"))
        plan = grow(snapshot, [pod], full)
        assert plan.full == frozenset()
        assert "maximum" not in plan.unplaceable[pod.uid]

    def test_a_group_that_cannot_be_steered_grows_until_the_zone_has_its_turn(self):
        snapshot = ClusterSnapshot([], [], {("default", "data"): a_claim("data", zone=ZONE_B)})
        pod = a_pod(volumes=mounting("data"))
        plan = grow(snapshot, [pod], a_group(launchable=False))
        assert asked(plan) == {("base", None): 2}
        stands = ClusterSnapshot(
            [a_node("x", instance="i-0a", cpu="0")],
            [],
            {("default", "data"): a_claim("data", zone=ZONE_B)},
        )
        known = a_group(launchable=False, instances=["i-0a"])
        assert asked(grow(stands, [pod], known)) == {("base", None): 1}

    def test_a_group_of_the_zone_is_better_than_one_that_has_to_be_lucky(self):
        snapshot = ClusterSnapshot([], [], {("default", "data"): a_claim("data", zone=ZONE_B)})
        wide, narrow = a_group("a", launchable=False), a_group("b", zones=[ZONE_B])
        plan = grow(snapshot, [a_pod(volumes=mounting("data"))], wide, narrow)
        assert asked(plan) == {("b", ZONE_B): 1}

    def test_pods_that_spread_over_zones_get_nodes_in_them(self):
        pods = pods_of("web", 4, cpu="1", **spread_over(ZONE))
        snapshot = ClusterSnapshot([a_node("a", cpu="1"), a_node("b", zone=ZONE_B, cpu="0")], [])
        plan = grow(snapshot, pods, a_group())
        assert asked(plan) == {("base", ZONE_B): 1, ("base", ZONE_A): 1}
        assert not plan.unplaceable

    def test_pods_that_want_each_other_go_to_one_new_node(self):
        term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
        together = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        plan = grow(empty(), pods_of("web", 3, cpu="1", affinity=together), a_group())
        assert total(plan) == 1

    def test_pods_that_wait_for_another_are_tried_again(self):
        term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "cache"}}}
        near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        web, cache = a_pod("web", affinity=near), a_pod("cache", labels={"app": "cache"})
        plan = grow(empty(), [web, cache], a_group())
        assert len(set(plan.placed.values())) == 1
        assert not plan.unplaceable


class TestUpcoming:
    def test_nodes_on_the_way_are_counted_before_new_ones(self):
        group = a_group(desired=1)
        pods = pods_of("web", 4, cpu="2")
        assert not grow(empty(), pods, group, upcoming={("asg/base", None): 1}).growths
        assert not grow(empty(), pods, group, upcoming={("asg/base", ZONE_B): 1}).growths

    def test_one_that_comes_up_in_the_wrong_zone_is_of_no_use(self):
        snapshot = ClusterSnapshot([], [], {("default", "data"): a_claim("data", zone=ZONE_B)})
        pod = [a_pod(volumes=mounting("data"))]
        plan = grow(snapshot, pod, a_group(desired=1), upcoming={("asg/base", ZONE_A): 1})
        assert asked(plan) == {("base", ZONE_B): 1}

    def test_one_on_the_way_in_a_group_that_was_refused_is_not_counted_on(self):
        refused = OtherRefusal(at=NOON, why="no")
        plan = grow(
            empty(),
            [a_pod()],
            a_group(desired=1),
            a_group("other"),
            upcoming={("asg/base", None): 1},
            refusals={"asg/base": [refused]},
        )
        assert asked(plan) == {("other", ZONE_A): 1}


def again(shortage: Shortage, plan: GrowthPlan, *, zones_known: bool) -> GrowthPlan:
    """Look a second time, when what was asked for is on its way."""
    more, upcoming = Counter[str](), Counter[tuple[str, str | None]]()
    for growth in plan.growths:
        more[growth.group.key] += growth.add
        upcoming[growth.group.key, growth.zone if zones_known else None] += growth.add
    groups = [replace(g, desired=g.desired + more[g.key]) for g in shortage.groups]
    return grow(shortage.snapshot(), shortage.unschedulable, *groups, upcoming=upcoming)


@given(shortages())
def test_every_pod_is_placed_or_refused_and_no_group_outgrows_its_maximum(shortage):
    plan = grow(shortage.snapshot(), shortage.unschedulable, *shortage.groups)
    assert plan.placed.keys() | plan.unplaceable.keys() == {p.uid for p in shortage.unschedulable}
    assert not plan.placed.keys() & plan.unplaceable.keys()
    for group in shortage.groups:
        assert sum(g.add for g in plan.growths if g.group.key == group.key) <= group.addable_nodes
    assert all(g.add > 0 for g in plan.growths)


@given(shortages())
def test_every_placed_pod_fits_when_its_turn_comes(shortage):
    plan = grow(shortage.snapshot(), shortage.unschedulable, *shortage.groups)
    snapshot, pods = shortage.snapshot(), {p.uid: p for p in shortage.unschedulable}
    coming = list(plan.awaited.values())
    for uid, name in plan.placed.items():
        while name not in snapshot.nodes:
            snapshot.add_node(coming.pop(0))
        assert snapshot.why_not(pods[uid], snapshot.nodes[name]) is None
        snapshot.place(pods[uid], name)
    assert len(plan.awaited) == total(plan)


@given(shortages(), st.booleans())
def test_a_second_observation_asks_for_nothing_more(shortage, zones_known):
    plan = grow(shortage.snapshot(), shortage.unschedulable, *shortage.groups)
    second = again(shortage, plan, zones_known=zones_known)
    assert not second.growths
    assert second.placed.keys() == plan.placed.keys()


@given(
    shortages(),
    st.integers(1, 12),
    st.sampled_from(["1", "2", "3"]),
    st.sampled_from([{}, spread_over(HOST), spread_over(ZONE)]),
)
def test_more_pods_of_a_kind_never_get_fewer_places_nor_fewer_nodes_of_a_group(
    shortage, count, cpu, rules
):
    pods = pods_of("new", count + 1, cpu=cpu, labels={"app": "web"}, **rules)
    for groups in (shortage.groups, shortage.groups[:1]):
        less = grow(shortage.snapshot(), pods[:-1], *groups)
        more = grow(shortage.snapshot(), pods, *groups)
        assert len(less.placed) <= len(more.placed)
        assert len(groups) > 1 or total(less) <= total(more)
