"""The on-demand reserve, and single replicas, which stand on spot only while it can take them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.actions import LabelNode, Release
from plimsoll.domain.kubernetes import (
    CAPACITY_LABELS,
    MIN_ON_DEMAND,
    Node,
    Pod,
    Resources,
    Workload,
)
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement import PlacementPlan, floor_of, plan_placement
from plimsoll.domain.placement.rebalancing import plan_moves
from plimsoll.domain.placement.reserve import losses, takes
from plimsoll.domain.placement.unevenness import uneven
from plimsoll.domain.scheduling import ClusterSnapshot
from tests.support.builders import NOON, ZONE_A, ZONE_B, a_deployment, a_node, a_pod, pod_spec_json
from tests.support.floors import spread_over
from tests.support.observations import looked

KEY = "spread.plimsoll.dev/0"
FAMILY = {"node.kubernetes.io/instance-type": "m5.large"}


def single(name: str, cpu: str = "1") -> Workload:
    template = pod_spec_json(cpu=cpu, **spread_over(0, name))
    return a_deployment(name, replicas=1, annotations={MIN_ON_DEMAND: "1"}, template=template)


def pod_of(name: str, node: str | None, cpu: str = "1", **how) -> Pod:
    return a_pod(
        f"{name}-1",
        labels={"app": name},
        owner=("ReplicaSet", f"{name}-abc"),
        node=node,
        cpu=cpu,
        **spread_over(0, name),
        **how,
    )


def other(name: str, node: str, cpu: str) -> Pod:
    return a_pod(name, labels={}, owner=None, node=node, cpu=cpu)


def nodes_of(on_demand: int, spot: int, labels: dict[str, str] | None = None) -> list[Node]:
    """Return nodes of eight processors; `labels` are those of spot nodes."""
    return [a_node(f"od-{n}", labels={KEY: "on-demand"}) for n in range(on_demand)] + [
        a_node(f"m5-{n}", capacity="spot", labels={**FAMILY, **(labels or {})}) for n in range(spot)
    ]


def carried_out(seen: Observation, plan: PlacementPlan) -> Observation:
    """Return the cluster after a plan: labels set, and each released pod where the scheduler puts it."""
    nodes = {node.name: node for node in seen.nodes}
    pods = {pod.uid: pod for pod in seen.pods}
    for step in plan.steps:
        match step.action:
            case LabelNode(node=node, labels=change):
                merged = {**nodes[node.name].labels, **change}
                nodes[node.name] = replace(
                    nodes[node.name], labels={k: v for k, v in merged.items() if v is not None}
                )
            case Release(pod=pod):
                rest = [p for p in pods.values() if p.uid != pod.uid]
                place = ClusterSnapshot(nodes.values(), rest).choose(replace(pod, node=None))
                pods[pod.uid] = replace(pod, node=None if place is None else place.name)
            case _:
                continue
    return replace(seen, nodes=[*nodes.values()], pods=[*pods.values()])


def spot_is_open(seen: Observation) -> bool:
    return any(node.capacity == "spot" and KEY in node.labels for node in seen.nodes)


@pytest.mark.parametrize(
    ("asked", "way", "layout"),
    [("1", "spread", "0"), ("30%", "spread", "0"), ("100%", "affinity", "0-0")],
)
def test_a_single_replica_may_stand_on_spot_unless_all_must_stand_on_on_demand(asked, way, layout):
    floor = floor_of(a_deployment(replicas=1, annotations={MIN_ON_DEMAND: asked}))
    assert (floor.way, floor.layout.entry, floor.keep) == (way, layout, 1)


@pytest.mark.parametrize(("taken", "is_open"), [("5", True), ("6", False)])
def test_the_spot_group_opens_with_three_places_on_on_demand_for_each(taken, is_open):
    pods = [pod_of("cart", "m5-0"), other("full", "od-0", taken)]
    seen = looked(nodes_of(1, 2), pods, [single("cart")])
    assert spot_is_open(carried_out(seen, plan_placement(seen, NOON))) is is_open


@pytest.mark.parametrize(("taken", "is_open"), [("6", True), ("6500m", False)])
def test_it_stays_open_with_two(taken, is_open):
    pods = [pod_of("cart", "m5-0"), other("full", "od-0", taken)]
    seen = looked(nodes_of(1, 2, {KEY: "spot-1"}), pods, [single("cart")])
    assert spot_is_open(carried_out(seen, plan_placement(seen, NOON))) is is_open


def test_a_single_replica_that_may_never_use_on_demand_takes_spot_from_nobody():
    template = pod_spec_json(**spread_over(0, "gpu"), nodeSelector={"gpu": "yes"})
    gpu = a_deployment("gpu", replicas=1, annotations={MIN_ON_DEMAND: "1"}, template=template)
    seen = looked(nodes_of(1, 2), [pod_of("cart", "m5-0")], [single("cart"), gpu])
    assert spot_is_open(carried_out(seen, plan_placement(seen, NOON)))


def test_where_no_node_is_on_demand_there_is_no_reserve():
    seen = looked(nodes_of(0, 2), [pod_of("cart", "m5-0")], [single("cart")])
    assert not spot_is_open(carried_out(seen, plan_placement(seen, NOON)))


def test_a_single_replica_moves_off_spot_when_the_reserve_shrinks():
    pods = [pod_of("cart", "m5-0"), other("full", "od-0", "6500m")]
    seen = looked(nodes_of(1, 2, {KEY: "spot-1"}), pods, [single("cart")])
    (before,) = plan_placement(seen, NOON).workloads
    assert not before.met
    for _ in range(2):  # labels change first
        seen = carried_out(seen, plan_placement(seen, NOON))
    (after,) = plan_placement(seen, NOON).workloads
    assert after.ready == {"on-demand": 1}
    assert not plan_placement(seen, NOON).steps


@pytest.mark.parametrize(("capacity", "moved"), [("on-demand", 0), ("spot", 1)])
def test_where_all_must_stand_on_on_demand_only_pods_on_spot_move(capacity, moved):
    nodes = [
        *nodes_of(1, 0),
        a_node("other", capacity=None, labels={"karpenter.sh/capacity-type": capacity}),
    ]
    template = pod_spec_json(nodeSelector={CAPACITY_LABELS[0]: "on-demand"})
    whole = {MIN_ON_DEMAND: "100%"}
    cart = a_deployment("cart", replicas=1, annotations=whole, template=template)
    seen = looked(nodes, [pod_of("cart", "other")], [cart])
    assert len(plan_moves(seen, uneven(seen, {}, [], NOON, pinned=[cart]), NOON).releases) == moved


def test_a_single_replica_on_spot_counts_as_kept_while_the_reserve_can_take_it():
    seen = looked(nodes_of(2, 2, {KEY: "spot-1"}), [pod_of("cart", "m5-0")], [single("cart")])
    (standing,) = plan_placement(seen, NOON).workloads
    assert standing.met


def test_a_single_replica_that_waits_for_on_demand_in_vain_may_run_on_spot():
    pods = [pod_of("cart", None), other("full", "od-0", "8")]
    seen = looked(nodes_of(1, 2), pods, [single("cart")])
    after = carried_out(seen, plan_placement(seen, NOON))
    assert ClusterSnapshot(after.nodes, after.pods).choose(pods[0]) is not None


@given(
    riders=st.lists(st.sampled_from(["500m", "1", "2", "3"]), min_size=1, max_size=6),
    taken=st.lists(st.integers(0, 7), min_size=1, max_size=3),
    was_open=st.booleans(),
)
def test_while_spot_is_open_the_loss_of_all_of_it_leaves_every_single_replica_a_place(
    riders, taken, was_open
):
    workloads = [single(f"w{n}", cpu) for n, cpu in enumerate(riders)]
    pods = [pod_of(f"w{n}", f"m5-{n % 3}", cpu) for n, cpu in enumerate(riders)]
    pods += [other(f"full-{n}", f"od-{n}", str(cpu)) for n, cpu in enumerate(taken) if cpu]
    nodes = nodes_of(len(taken), 3, {KEY: "spot-1"} if was_open else None)
    seen = looked(nodes, pods, workloads)
    seen = carried_out(seen, plan_placement(seen, NOON))
    if not spot_is_open(seen):
        return
    left = [node for node in seen.nodes if node.capacity == "on-demand"]
    snapshot = ClusterSnapshot(left, seen.pods)
    for pod in seen.pods:
        if pod.node not in {node.name for node in left}:
            place = snapshot.choose(pod)
            assert place is not None
            snapshot.place(pod, place.name)


@given(
    riders=st.lists(st.sampled_from(["500m", "1", "2", "3"]), min_size=1, max_size=6),
    taken=st.lists(st.integers(0, 7), min_size=1, max_size=3),
)
def test_where_the_reserve_has_shrunk_single_replicas_leave_spot_while_any_fits_and_it_ends(
    riders, taken
):
    workloads = [single(f"w{n}", cpu) for n, cpu in enumerate(riders)]
    pods = [pod_of(f"w{n}", f"m5-{n % 3}", cpu) for n, cpu in enumerate(riders)]
    pods += [other(f"full-{n}", f"od-{n}", str(cpu)) for n, cpu in enumerate(taken) if cpu]
    seen = looked(nodes_of(len(taken), 3, {KEY: "spot-1"}), pods, workloads)
    for _ in range(len(riders) + 2):
        plan = plan_placement(seen, NOON)
        seen = carried_out(seen, plan)
    assert not plan_placement(seen, NOON).steps
    if not spot_is_open(seen):
        snapshot = ClusterSnapshot(seen.nodes, seen.pods)
        on_spot = [pod for pod in seen.pods if (pod.node or "").startswith("m5")]
        assert [pod.name for pod in on_spot if snapshot.candidates(pod)] == []


def test_the_reserve_is_what_on_demand_has_free_against_the_largest_loss_of_each_kind():
    nodes = [
        a_node("od-0", zone=ZONE_A),
        a_node("od-1", zone=ZONE_B),
        a_node("m5-0", zone=ZONE_A, capacity="spot", labels=FAMILY),
        a_node(
            "c5-0",
            zone=ZONE_B,
            capacity="spot",
            labels={"node.kubernetes.io/instance-type": "c5.large"},
        ),
    ]
    pods = [other("a", "od-0", "6"), other("b", "m5-0", "4"), other("c", "c5-0", "8")]
    found = {loss.kind: loss for loss in losses(looked(nodes, pods))}
    assert {kind: loss.name for kind, loss in found.items()} == {
        "node": "c5-0",
        "family": "c5",
        "zone": ZONE_B,
        "all spot": "all spot",
    }
    assert found["family"].covered == (2 + 8) / 8
    assert found["zone"].covered == 2 / 8  # its own on-demand node is lost too
    assert found["all spot"].covered == pytest.approx((2 + 8) / 12)


@pytest.mark.parametrize("kind", ["DaemonSet", "Node"])
def test_pods_of_daemon_sets_and_of_nodes_need_no_other_place(kind):
    requests = Resources(cpu=1000, pods=1, extended=(("nvidia.com/gpu", 1),))
    daemon = a_pod("log", labels={}, owner=(kind, "log"), node="m5-0")
    daemon = replace(daemon, scheduling=replace(daemon.scheduling, requests=requests))
    assert not losses(looked(nodes_of(1, 1), [daemon]))


def test_the_reserve_is_what_pods_of_daemon_sets_leave_of_on_demand_nodes():
    daemon = a_pod("log", labels={}, owner=("DaemonSet", "log"), node="od-0", cpu="1")
    pods = [daemon, other("a", "od-0", "2"), other("b", "m5-0", "4")]
    found = {loss.kind: loss for loss in losses(looked(nodes_of(1, 1), pods))}
    assert (found["all spot"].needs.cpu, found["all spot"].free.cpu) == (4000, 5000)


@pytest.mark.parametrize(("count", "places"), [(1, True), (4, True), (5, False)])
def test_nodes_are_filled_one_after_the_other_until_there_is_no_place(count, places):
    nodes = nodes_of(4, 0)
    free = {node.name: node.allocatable for node in nodes}
    assert takes([(pod_of("cart", None, "5").scheduling, count)], nodes, free) is places
