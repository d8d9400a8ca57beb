"""A cheaper mix of instances for the same pods, under the rules that their owners stated."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from random import Random
from statistics import mean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from plimsoll.domain.capacity import Daemons
from plimsoll.domain.kubernetes import MIN_ON_DEMAND
from plimsoll_service.adapters.price_table import price_table
from plimsoll_service.domain.analysis import instance_mix
from plimsoll_service.domain.analysis.cluster_view import View
from plimsoll_service.domain.analysis.fleet import Offer, Worth, filled, useful, worth_of
from plimsoll_service.domain.analysis.instance_mix import InstanceMix, cheaper_mix, offers_of
from plimsoll_service.wire.snapshot import Placing, Pod, Snapshot, Taint, Workload
from tests.support.exact_mix import cheapest
from tests.support.snapshots import (
    GIB,
    NOW,
    amounts,
    wire_node,
    wire_pods,
    wire_snapshot,
    wire_workload,
)

TABLE = price_table()


def cluster(count: int = 6, *, replicas: int = 6, kind: str = "m5.4xlarge", **workload: Any):
    """Return a cluster of large nodes, each with one small pod of web."""
    whole = TABLE.sizes[kind].allocatable
    nodes = tuple(
        wire_node(
            f"n{n}",
            labels={
                "node.kubernetes.io/instance-type": kind,
                "topology.kubernetes.io/zone": f"us-east-1{'abc'[n % 3]}",
            },
            allocatable=amounts(whole.cpu, whole.memory, whole.pods),
            created_at=NOW - timedelta(days=1),
        )
        for n in range(count)
    )
    web = wire_workload("web", replicas=replicas, requests=amounts(700, GIB), **workload)
    pods = wire_pods(web, *(nodes[n % count].name for n in range(replicas)))
    return wire_snapshot(nodes=nodes, workloads=(web,), pods=pods, usage=())


def mixed(seen: Snapshot) -> InstanceMix:
    return cheaper_mix(View(seen=seen), TABLE)


def today(seen: Snapshot) -> float:
    types = (node.labels["node.kubernetes.io/instance-type"] for node in seen.nodes)
    return sum(TABLE.prices[name].on_demand for name in types)


def test_small_pods_get_small_instances():
    found = mixed(cluster())
    assert found.hourly < today(cluster()) / 4
    assert found.bound <= found.hourly


def test_without_a_stated_floor_nothing_moves_to_spot():
    assert {each.capacity for each in mixed(cluster()).instances} == {"on-demand"}


@pytest.mark.parametrize(("floor", "on_demand"), [("0", 0), ("50%", 3), ("100%", 6)])
def test_as_many_stand_on_on_demand_as_the_floor_asks_for(floor, on_demand):
    found = mixed(cluster(annotations={MIN_ON_DEMAND: floor}))
    stands = Counter({"on-demand": 0, "spot": 0})
    for each in found.instances:
        stands[each.capacity or ""] += each.pods
    assert stands["on-demand"] >= on_demand
    assert stands.total() == 6
    assert (stands["spot"] > 0) == (on_demand < 6)


def test_a_floor_that_nobody_can_read_keeps_all_on_on_demand():
    found = mixed(cluster(annotations={MIN_ON_DEMAND: "most"}))
    assert {each.capacity for each in found.instances} == {"on-demand"}


def test_spot_is_spread_over_three_families():
    found = mixed(cluster(count=9, replicas=9, annotations={MIN_ON_DEMAND: "0"}))
    families = Counter(each.type.partition(".")[0] for each in found.instances)
    assert len(families) >= 3
    assert max(families.values()) <= -(-families.total() // 3)


def test_no_node_or_zone_holds_more_replicas_than_today():
    found = mixed(cluster())
    assert max(each.pods for each in found.instances) == 1
    assert set(Counter(each.zone for each in found.instances).values()) == {2}


def test_no_node_holds_more_than_half_of_all_pods_unless_one_does_today():
    seen = cluster(count=2, replicas=1)
    cart = wire_workload("cart", requests=amounts(100, GIB))
    pods = (*seen.pods, *wire_pods(cart, "n1"))
    found = mixed(replace(seen, workloads=(*seen.workloads, cart), pods=pods))
    assert [each.pods for each in found.instances] == [1, 1]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"taints": (Taint(key="dedicated"),)}, "its taints set it apart"),
        ({"ready": False}, "it is not Ready"),
        ({"labels": {}}, "its type has no known price"),
    ],
)
def test_a_node_that_is_special_stays_what_it_is(change, why):
    seen = cluster()
    found = mixed(replace(seen, nodes=(replace(seen.nodes[0], **change), *seen.nodes[1:])))
    assert found.kept == {"n0": why}


@pytest.mark.parametrize(
    ("placing", "why"),
    [
        (Placing(unstated=True), "a pod on it stays"),
        (
            Placing(node_selector={"node.kubernetes.io/instance-type": "m5.4xlarge"}),
            "fits on no instance that is offered",
        ),
        (Placing(node_selector={"karpenter.sh/nodepool": "gold"}), "fits on no instance"),
    ],
)
def test_a_node_stays_where_a_pod_asks_for_what_is_not_offered(placing, why):
    seen = cluster(placing=placing)
    found = mixed(seen)
    assert found.kept.keys() == {node.name for node in seen.nodes}
    assert all(why in reason for reason in found.kept.values())
    assert found.hourly == pytest.approx(today(seen))


def test_daemons_take_their_part_of_each_new_node():
    seen = cluster()
    hungry = wire_workload("logs", kind="DaemonSet", requests=amounts(1500, 4 * GIB))
    daemons = wire_pods(hungry, *(node.name for node in seen.nodes))
    heavy = replace(seen, workloads=(*seen.workloads, hungry), pods=(*seen.pods, *daemons))
    assert mixed(heavy).hourly > mixed(seen).hourly
    assert all(TABLE.sizes[each.type].vcpus > 1 for each in mixed(heavy).instances)


def test_a_cluster_that_is_too_large_costs_no_time(monkeypatch):
    monkeypatch.setattr(instance_mix, "MOST_PODS", 5)
    found = mixed(cluster())
    assert set(found.kept.values()) == {"there are more than 5 pods"}
    assert found.hourly == found.bound == pytest.approx(today(cluster()))


def test_an_empty_cluster_needs_nothing():
    found = mixed(wire_snapshot(nodes=(), pods=(), workloads=(), usage=()))
    assert (found.instances, found.hourly, found.bound, found.gap) == ((), 0, 0, 0)


pods = st.lists(
    st.tuples(st.integers(1, 6), st.integers(10, 3000), st.integers(16, 12_000)), max_size=6
)


@settings(max_examples=25)
@given(workloads=pods, floor=st.sampled_from(["0", "1", "50%", "100%", ""]))
def test_every_pod_has_a_place_and_no_node_holds_more_than_nine_tenths(workloads, floor):
    seen = cluster()
    told: list[Workload] = []
    placed: list[Pod] = []
    for number, (replicas, cpu, mebibytes) in enumerate(workloads):
        workload = wire_workload(
            f"w{number}",
            replicas=replicas,
            requests=amounts(cpu, mebibytes * 2**20),
            annotations={MIN_ON_DEMAND: floor} if floor else {},
        )
        told.append(workload)
        placed += wire_pods(workload, *(f"n{n}" for n in range(replicas)))
    found = mixed(replace(seen, workloads=tuple(told), pods=tuple(placed)))
    assert sum(each.pods for each in found.instances) == len(placed)
    assert found.bound <= found.hourly * (1 + 1e-6)
    cpu = sum(0.9 * each.allocatable.cpu for each in found.instances)
    assert sum(pod.requests.cpu_m for pod in placed) <= cpu + len(found.instances)


def offer(cpu: int, memory: int, hourly: float, type_: str = "a.large") -> Offer:
    return Offer(
        type=type_,
        capacity="on-demand",
        whole=TABLE.sizes["m5.large"].allocatable,
        cpu=cpu,
        memory=memory,
        pods=10,
        hourly=hourly,
    )


@given(
    offers=st.lists(
        st.builds(
            offer,
            st.integers(1, 100),
            st.integers(1, 100),
            st.floats(0.01, 10, allow_subnormal=False),
        ),
        min_size=1,
        max_size=6,
    ),
    cpu=st.integers(0, 500),
    memory=st.integers(0, 500),
)
def test_no_offer_is_worth_more_than_it_costs_and_so_no_purchase_is(offers, cpu, memory):
    worth = worth_of(offers, cpu, memory)
    assert all(worth.of(o.cpu, o.memory) <= o.hourly * (1 + 1e-6) for o in offers)
    for one in offers:  # buying enough of any one offer costs no less than the demand is worth
        number = max(cpu / one.cpu, memory / one.memory)
        assert worth.of(cpu, memory) <= number * one.hourly * (1 + 1e-6)


def test_the_worth_of_a_demand_is_the_optimum_of_the_linear_program():
    offers = [offer(4, 1, 1.0), offer(1, 4, 1.0)]
    assert worth_of(offers, 5, 5).of(5, 5) == pytest.approx(2.0)  # one of each
    assert worth_of(offers, 4, 1).of(4, 1) == pytest.approx(1.0)


def test_an_offer_is_useless_where_enough_families_give_more_for_less():
    small, dear, large = offer(1, 1, 1.0), offer(1, 1, 2.0, "b.large"), offer(2, 2, 2.0, "c.large")
    assert useful([small, dear, large]) == [small, large]
    assert useful([small, dear, large], families=3) == [small, large, dear]


def test_an_instance_takes_items_as_long_as_they_fit():
    items = [(3, 3, 1), (0, 1, 2), (2, 2, 9)]
    assert (
        filled(offer(8, 8, 1.0), items, Worth(cpu=1.0, memory=0.0)) == 5
    )  # 3, then 2: memory ends


def test_the_proven_optimum_of_small_fleets_lies_between_the_bound_and_the_mix():
    above = [a_small_fleet_above_its_optimum(seed) for seed in range(20)]
    assert mean(above) < 0.02
    assert max(above) < 0.15


def a_small_fleet_above_its_optimum(seed: int) -> float:
    draw = Random(seed)
    sizes = draw.sample([(100, 256), (500, 1024), (1000, 4096), (2000, 2048), (2000, 8192)], 3)
    counts = [draw.randint(1, 4) for _ in sizes]
    seen = cluster(count=1)
    told = tuple(
        wire_workload(
            f"w{n}",
            replicas=count,
            max_unavailable=count,
            requests=amounts(cpu, mebibytes * 2**20),
        )
        for n, ((cpu, mebibytes), count) in enumerate(zip(sizes, counts, strict=True))
    )
    pods = [pod for w in told for pod in wire_pods(w, *["n0"] * w.replicas)]
    view = View(seen=replace(seen, workloads=told, pods=tuple(pods)))
    found = cheaper_mix(view, TABLE)
    offers = offers_of(view, TABLE, Daemons(view.standing()))
    optimum = cheapest(
        [offer for offer in offers if offer.capacity == "on-demand"],
        [(pod.requests.cpu_m, pod.requests.memory) for pod in pods],
    )
    assert found.bound <= optimum * (1 + 1e-6)
    assert optimum <= found.hourly * (1 + 1e-6)
    return found.hourly / optimum - 1
