"""Which nodes a cluster can do without: nothing is moved that is safer where it stands."""

from __future__ import annotations

import itertools
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from plimsoll_service.adapters.price_table import price_table
from plimsoll_service.domain.analysis.cluster_view import View
from plimsoll_service.domain.analysis.consolidation import Consolidations, consolidations
from plimsoll_service.wire.snapshot import (
    Amounts,
    Budget,
    Owner,
    Placing,
    Pod,
    Snapshot,
    Spread,
    Taint,
    Toleration,
    Volume,
    Workload,
)
from tests.support.snapshots import (
    GIB,
    NOW,
    amounts,
    wire_node,
    wire_pods,
    wire_snapshot,
    wire_workload,
)

OLD = NOW - timedelta(days=1)
ZONE_B = {"topology.kubernetes.io/zone": "us-east-1b"}
FULL = wire_node("full", allocatable=amounts(), labels=None, created_at=NOW)
"""Keeps a cluster from having two nodes only, and takes nothing."""
SPOT = {"node.kubernetes.io/capacity": "spot"}


def node(name: str, **changes: Any):
    return wire_node(name, created_at=OLD, **changes)


def looked(seen: Snapshot) -> Consolidations:
    return consolidations(View(seen=seen), price_table())


def two_nodes(
    *, replicas: int = 2, there: dict[str, Any] | None = None, **workload: Any
) -> Snapshot:
    """Return a cluster in which web's pods stand on a, and those of cart on b, which has room for all."""
    web = wire_workload("web", replicas=replicas, max_unavailable=replicas, **workload)
    cart = wire_workload("cart", replicas=2, max_unavailable=2)
    return wire_snapshot(
        nodes=(node("a"), node("b", **there or {}), FULL),
        workloads=(web, cart),
        pods=(
            *wire_pods(web, *["a"] * replicas, requests=amounts(100, GIB // 8)),
            *wire_pods(cart, "b", "b", requests=amounts(300, GIB)),
        ),
        usage=(),
    )


def test_a_node_whose_pods_fit_on_another_can_go():
    (found,) = looked(two_nodes()).found
    assert found.node.name == "a"
    assert found.destinations == ("b", "b")
    assert found.monthly == pytest.approx(price_table().prices["m5.large"].on_demand * 730)


def test_a_node_with_nothing_but_daemons_is_idle():
    seen = two_nodes()
    daemon = wire_workload("proxy", kind="DaemonSet")
    found = looked(
        replace(
            seen,
            workloads=(*seen.workloads, daemon),
            nodes=(*seen.nodes, node("c")),
            pods=(*seen.pods, *wire_pods(daemon, "a", "b", "c", requests=amounts(10, 10))),
        )
    )
    assert [(each.node.name, each.idle) for each in found.found] == [("c", True), ("a", False)]


def test_what_can_go_leaves_room_for_all_that_went_before():
    web = wire_workload("web", replicas=4, max_unavailable=4)
    names = ("a", "b", "c", "d")
    seen = wire_snapshot(
        nodes=tuple(node(name) for name in names),
        workloads=(web,),
        pods=wire_pods(web, *names, requests=amounts(800, GIB)),
        usage=(),
    )
    found = looked(seen)
    assert [(each.node.name, each.destinations) for each in found.found] == [
        ("a", ("b",)),
        ("c", ("d",)),
    ]
    assert found.kept["b"] == "it takes the pods of another"


def test_the_last_two_nodes_stay():
    seen = two_nodes()
    found = looked(replace(seen, nodes=seen.nodes[:2]))
    assert not found.found
    assert found.kept["a"] == "it is one of the last 2 nodes"


def test_a_tenth_of_each_node_stays_free():
    seen = two_nodes(replicas=1)
    pods = wire_pods(seen.workloads[1], "b", "b", requests=amounts(840, GIB))
    kept = looked(replace(seen, pods=(seen.pods[0], *pods))).kept
    assert kept["a"] == "its pods fit nowhere else as safely as here"


def one(**changes: Any):
    def change(seen: Snapshot) -> Snapshot:
        return replace(seen, pods=(replace(seen.pods[0], **changes), *seen.pods[1:]))

    return change


def web(**changes: Any):
    def change(seen: Snapshot) -> Snapshot:
        return replace(seen, workloads=(replace(seen.workloads[0], **changes), *seen.workloads[1:]))

    return change


def first(**changes: Any):
    def change(seen: Snapshot) -> Snapshot:
        return replace(seen, nodes=(replace(seen.nodes[0], **changes), *seen.nodes[1:]))

    return change


def also(**changes: Any):
    return lambda seen: replace(seen, **changes)


MIRROR = Owner(kind="Node", name="a", uid="uid-a")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (one(owner=None), "nobody makes it anew"),
        (one(owner=Owner(kind="CloneSet", name="x", uid="x")), "nothing is told of what owns it"),
        (one(annotations={"plimsoll.dev/ignore": "true"}), "opted out"),
        (one(annotations={"karpenter.sh/do-not-disrupt": "true"}), "karpenter.sh/do-not-disrupt"),
        (one(annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}), "safe-to"),
        (first(annotations={"karpenter.sh/do-not-disrupt": "true"}), "Node a is protected"),
        (one(restart_policy="Never"), "not made anew"),
        (one(deleting=True), "stopping"),
        (one(owner=MIRROR), "static pods"),
        (web(kind="Job"), "would lose what it has done"),
        (web(annotations={"plimsoll.dev/ignore": "true"}), "opted out"),
        (web(annotations={"plimsoll.dev/ignore": "yes"}), "opted out"),
        (web(placing=Placing(unstated=True)), "more of its node than a snapshot tells"),
        (web(placing=Placing(node_selector={"disk": "ssd"})), "more of its node"),
        (web(placing=Placing(spread=(Spread(topology_key="rack"),))), "more of its node"),
        (web(ready=1), "only 1 of 2 replicas are Ready"),
        (web(replicas=1, ready=1, strategy="Recreate"), "cannot run twice"),
        (web(kind="StatefulSet", replicas=1, ready=1), "cannot run twice"),
        (first(unschedulable=True), "cordoned"),
        (first(ready=False), "not Ready"),
        (first(created_at=NOW - timedelta(minutes=5)), "younger"),
        (first(labels={}), "no price is known"),
        (
            first(taints=(Taint(key="node-role.kubernetes.io/control-plane"),)),
            "static pods run on it",
        ),
        (
            also(budgets=(Budget(uid="b", namespace="shop", name="web", workloads=("uid-web",)),)),
            "the budget shop/web lets none go",
        ),
    ],
    ids=itertools.count(),
)
def test_a_node_stays_where_a_pod_on_it_does(change, why):
    found = looked(change(two_nodes()))
    assert why in found.kept["a"]


@pytest.mark.parametrize(
    ("pending", "kept"),
    [
        ({"requests": amounts(1500, GIB)}, True),
        ({"requests": amounts(64_000, GIB)}, False),
        ({"elsewhere": True}, False),
        ({"deleting": True}, False),
        ({"owner": None}, True),
    ],
    ids=["fits once it is empty", "fits on no node", "for another scheduler", "goes", "unknown"],
)
def test_a_pending_pod_keeps_the_nodes_on_which_it_could_stand(pending, kept):
    seen, late = two_nodes(), wire_workload("late")
    (pod,) = wire_pods(late, "", phase="Pending", **pending)
    found = looked(replace(seen, workloads=(*seen.workloads, late), pods=(*seen.pods, pod)))
    assert ("shop/late-0 waits for a node" in found.kept.get("a", "")) == kept


def test_a_pending_pod_that_the_labels_of_a_node_keep_away_does_not_keep_it():
    late = wire_workload("late", placing=Placing(node_selector={"kubernetes.io/arch": "arm64"}))
    seen = two_nodes()
    pods = (*seen.pods, *wire_pods(late, "", phase="Pending"))
    found = looked(replace(seen, workloads=(*seen.workloads, late), pods=pods)).found
    assert [each.node.name for each in found] == ["a"]


@pytest.mark.parametrize(
    ("there", "workload"),
    [
        ({"ready": False}, {}),
        ({"unschedulable": True}, {}),
        ({"taints": (Taint(key="dedicated", value="cart"),)}, {}),
        ({"labels": SPOT}, {}),
        ({}, {"placing": Placing(apart=("kubernetes.io/hostname",))}),
        ({}, {"placing": Placing(node_selector={"topology.kubernetes.io/zone": "us-east-1c"})}),
    ],
    ids=["not-ready", "cordoned", "tainted", "on-demand-to-spot", "apart", "elsewhere"],
)
def test_pods_are_not_counted_on_a_node_that_may_not_have_them(there, workload):
    labels = {"kubernetes.io/hostname": "b"} | there.pop("labels", {})
    seen = two_nodes(there=there | {"labels": labels}, **workload)
    assert all(each.node.name != "a" for each in looked(seen).found)


def test_a_taint_that_is_tolerated_keeps_nobody_away():
    placing = Placing(tolerations=(Toleration(key="dedicated", operator="Exists"),))
    seen = two_nodes(there={"taints": (Taint(key="dedicated"),)}, placing=placing)
    assert [each.node.name for each in looked(seen).found] == ["a"]


def test_a_pod_stays_in_the_zone_of_its_volume():
    seen = one(volumes=("data",))(two_nodes(there={"labels": ZONE_B}))
    volume = Volume(
        uid="v",
        name="pv",
        phase="Bound",
        namespace="shop",
        claim="data",
        capacity=GIB,
        zone="us-east-1a",
        created_at=OLD,
    )
    assert "a" in looked(replace(seen, volumes=(volume,))).kept


@pytest.mark.parametrize("max_unavailable", [1, "25%"])
def test_no_node_holds_more_replicas_than_one_did_or_a_rollout_may_miss(max_unavailable):
    spread = wire_workload("web", replicas=2, max_unavailable=max_unavailable)
    seen = wire_snapshot(
        nodes=(node("a"), node("b"), FULL),
        workloads=(spread,),
        pods=wire_pods(spread, "a", "b", requests=amounts(100, GIB // 8)),
        usage=(),
    )
    assert not looked(seen).found


def test_nothing_goes_while_a_pod_waits_for_a_node():
    seen = two_nodes()
    waiting = replace(wire_pods(seen.workloads[0], "")[0], uid="waiting", phase="Pending")
    assert not looked(replace(seen, pods=(*seen.pods, waiting))).found


def test_a_node_that_tells_nothing_of_its_size_takes_no_pod():
    empty = first(allocatable=Amounts())(two_nodes())
    assert [each.node.name for each in looked(empty).found] == ["a"]


sizes = st.lists(st.tuples(st.integers(50, 900), st.integers(64, 3000)), min_size=1, max_size=8)


@given(clusters=st.lists(sizes, min_size=2, max_size=6), chosen=st.sets(st.integers(0, 5)))
def test_any_of_them_can_go_in_any_order(clusters, chosen):
    workloads: list[Workload] = []
    pods: list[Pod] = []
    for number, on_it in enumerate(clusters):
        for place, (cpu, mebibytes) in enumerate(on_it):
            workload = wire_workload(
                f"w{number}-{place}", max_unavailable=1, requests=amounts(cpu, mebibytes * 2**20)
            )
            workloads.append(workload)
            pods += wire_pods(workload, f"n{number}")
    nodes = tuple(node(f"n{n}", allocatable=amounts(8000, 32 * GIB, 29)) for n in range(6))
    seen = wire_snapshot(nodes=nodes, workloads=tuple(workloads), pods=tuple(pods), usage=())
    found = looked(seen).found
    left = {each.name: each.allocatable for each in nodes}
    used = Counter({pod.uid: pod.requests.cpu_m for pod in pods})
    where = {pod.uid: pod.node for pod in pods}
    for number in sorted(chosen):
        if number < len(found):
            gone = found[number]
            del left[gone.node.name]
            where |= zip((pod.uid for pod in gone.pods), gone.destinations, strict=True)
    assert set(where.values()) <= left.keys()
    for name, whole in left.items():
        cpu = sum(used[uid] for uid, at in where.items() if at == name)
        before = sum(pod.requests.cpu_m for pod in pods if pod.node == name)
        assert cpu <= max(before, 0.9 * whole.cpu_m)
