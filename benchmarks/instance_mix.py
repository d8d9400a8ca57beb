"""How far the mix that the service advises is above the optimum, and below what is usually done.

    python benchmarks/instance_mix.py [--fleets N] [--pods N]

Small fleets are compared with the proven optimum. A synthetic cluster is compared with the bound that
the service itself states, with the bound of the linear program over patterns, and with first-fit
decreasing on one instance type: the one that the cluster has, and the best of all.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from datetime import timedelta
from statistics import mean
from typing import Final

from plimsoll.domain.capacity import Daemons
from plimsoll_service.adapters.price_table import price_table
from plimsoll_service.domain.analysis import InstanceMix, Offer, View, cheaper_mix, offers_of
from plimsoll_service.wire.snapshot import Node, Pod, Snapshot, Workload
from tests.support.exact_mix import Size, bound, cheapest, first_fit_decreasing
from tests.support.snapshots import NOW, amounts, wire_node, wire_pods, wire_snapshot, wire_workload

TABLE: Final = price_table()
MIB: Final = 2**20
SIZES: Final = (
    (100, 256),
    (250, 512),
    (250, 1024),
    (500, 1024),
    (500, 2048),
    (1000, 2048),
    (1000, 4096),
    (2000, 4096),
    (2000, 8192),
    (4000, 8192),
)
"""Millicores and MiB, as requests in clusters mostly are."""
REPLICAS: Final = (1, 2, 3, 4, 6, 10, 20)


def a_cluster(
    pods: int, seed: int, *, kind: str = "m5.2xlarge", sizes: Sequence[Size] = SIZES, apart: bool
) -> Snapshot:
    """Return a cluster that a scheduler would have made: pods on random nodes that have room.

    With `apart`, no node may hold more replicas of a workload than one does, as the service plans it; else
    all of them may stand together, as the exact solver counts.
    """
    draw = random.Random(seed)
    whole = TABLE.sizes[kind].allocatable
    nodes: list[Node] = []
    workloads: list[Workload] = []
    placed: list[Pod] = []
    free: dict[str, list[int]] = {}
    while len(placed) < pods:
        replicas = min(pods - len(placed), draw.choice(REPLICAS))
        cpu, mebibytes = draw.choice(sizes)
        workload = wire_workload(
            f"w{len(workloads)}",
            replicas=replicas,
            requests=amounts(cpu, mebibytes * MIB),
            max_unavailable="25%" if apart else replicas,
        )
        workloads.append(workload)
        names = []
        for _ in range(replicas):
            room = [n for n, f in free.items() if f[0] >= cpu and f[1] >= mebibytes * MIB and f[2]]
            if not room:
                nodes.append(_node(len(nodes), kind, apart=apart))
                room = [nodes[-1].name]
                free[room[0]] = [whole.cpu, whole.memory, whole.pods]
            names.append(name := draw.choice(room))
            left = free[name]
            free[name] = [left[0] - cpu, left[1] - mebibytes * MIB, left[2] - 1]
        placed += wire_pods(workload, *names)
    return wire_snapshot(
        nodes=tuple(nodes), workloads=tuple(workloads), pods=tuple(placed), usage=()
    )


def _node(number: int, kind: str, *, apart: bool) -> Node:
    whole = TABLE.sizes[kind].allocatable
    zone = f"us-east-1{'abc'[number % 3 if apart else 0]}"
    return wire_node(
        f"n{number}",
        labels={"node.kubernetes.io/instance-type": kind, "topology.kubernetes.io/zone": zone},
        allocatable=amounts(whole.cpu, whole.memory, whole.pods),
        created_at=NOW - timedelta(days=1),
    )


def offers_for(view: View) -> list[Offer]:
    """Return what may be bought, on on-demand: no workload here states a floor."""
    found = offers_of(view, TABLE, Daemons(view.standing()))
    return [offer for offer in found if offer.capacity == "on-demand"]


def sizes_of(seen: Snapshot) -> list[Size]:
    return [(pod.requests.cpu_m, pod.requests.memory) for pod in seen.pods]


def small_fleets(number: int) -> None:
    ours, best, ffd = [], [], []
    for seed in range(number):
        draw = random.Random(seed)
        seen = a_cluster(draw.randint(6, 16), seed, sizes=draw.sample(SIZES, 4), apart=False)
        view = View(seen=seen)
        offers = offers_for(view)
        pods = sizes_of(seen)
        optimum = cheapest(offers, pods)
        ours.append(cheaper_mix(view, TABLE).hourly / optimum - 1)
        singles = [first_fit_decreasing(offer, pods) for offer in offers]
        best.append(min(cost for cost in singles if cost is not None) / optimum - 1)
        ffd.append(len(seen.nodes) * TABLE.prices["m5.2xlarge"].on_demand / optimum - 1)
    print(f"{number} fleets of 6 to 16 pods, above the proven optimum:   mean      worst   optimal")
    for name, gaps in (
        ("the service's mix", ours),
        ("first-fit decreasing, best single type", best),
        ("the nodes that are there (m5.2xlarge)", ffd),
    ):
        optimal = sum(gap < 1e-6 for gap in gaps)  # noqa: PLR2004 - rounding
        print(f"  {name:<46}{mean(gaps):>9.1%}{max(gaps):>10.1%}{optimal:>8} of {number}")


def one_cluster(pods: int) -> None:
    free = a_cluster(pods, 1, apart=False)
    view = View(seen=free)
    offers, wanted = offers_for(view), sizes_of(free)
    began = time.perf_counter()
    mix = cheaper_mix(view, TABLE)
    took = time.perf_counter() - began
    floor = bound(offers, wanted)
    same = next(o for o in _of_type("m5.2xlarge"))
    singles = {o.type: first_fit_decreasing(o, wanted) for o in offers}
    fitting = {name: cost for name, cost in singles.items() if cost is not None}
    cheapest_type = min(fitting, key=lambda name: fitting[name])
    print(
        f"\n{pods} pods on {len(free.nodes)} m5.2xlarge, dollars an hour (mix made in {took:.1f} s)"
    )
    print(f"  {'':<46}{'costs':>9}{'above the bound':>18}{'instances':>11}")
    rows: list[tuple[str, float, object]] = [
        ("the nodes that are there", len(free.nodes) * same.hourly, len(free.nodes)),
        ("first-fit decreasing on m5.2xlarge", first_fit_decreasing(same, wanted) or 0, ""),
        (f"first-fit decreasing on {cheapest_type}", fitting[cheapest_type], ""),
        ("the service's mix", mix.hourly, len(mix.instances)),
        ("bound: patterns in parts, by HiGHS", floor, ""),
        ("bound: as the service states it", mix.bound, ""),
    ]
    for name, cost, number in rows:
        print(f"  {name:<46}{cost:>9.2f}{cost / floor - 1:>17.1%}{number:>11}")
    _apart(pods)


def _apart(pods: int) -> None:
    """Print what the rules cost: three zones, and no node with more replicas than one has today."""
    seen = a_cluster(pods, 1, apart=True)
    mix: InstanceMix = cheaper_mix(View(seen=seen), TABLE)
    print(
        f"  with three zones and replicas kept apart:     {mix.hourly:>9.2f}, "
        f"{mix.gap:.1%} above the bound as stated, {len(mix.instances)} instances"
    )


def _of_type(kind: str) -> list[Offer]:
    size, price = TABLE.sizes[kind], TABLE.prices[kind]
    whole = size.allocatable
    return [
        Offer(
            type=kind,
            capacity="on-demand",
            whole=whole,
            cpu=whole.cpu - whole.cpu // 10,
            memory=whole.memory - whole.memory // 10,
            pods=whole.pods,
            hourly=price.on_demand,
        )
    ]


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--fleets", type=int, default=200)
    options.add_argument("--pods", type=int, default=500)
    chosen = options.parse_args()
    small_fleets(chosen.fleets)
    one_cluster(chosen.pods)
