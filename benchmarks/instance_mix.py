"""How far the mix that the service advises is above the optimum, and below what is usually done.

    python -m benchmarks.instance_mix [--fleets N]

Small fleets are compared with the proven optimum, as are the nodes that they have, and first-fit decreasing on
the best single instance type.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from datetime import timedelta
from statistics import mean
from typing import Final

from plimsoll.domain.capacity import Daemons
from plimsoll_service.adapters.price_table import price_table
from plimsoll_service.domain.analysis import Offer, View, cheaper_mix, offers_of
from plimsoll_service.wire.snapshot import Node, Pod, Snapshot, Workload
from tests.support.exact_mix import Size, cheapest, first_fit_decreasing
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


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--fleets", type=int, default=200)
    small_fleets(options.parse_args().fleets)
