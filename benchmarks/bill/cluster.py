"""A cluster as the service is told of it: pods on random nodes that have room."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Final

from plimsoll_service.adapters.price_table import price_table
from plimsoll_service.wire.snapshot import Node, Pod, Snapshot, Workload
from tests.support.snapshots import NOW, amounts, wire_node, wire_pods, wire_snapshot, wire_workload

MIB: Final = 2**20
KIND: Final = "m5.2xlarge"
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


def a_cluster(pods: int, seed: int) -> Snapshot:
    """Return a cluster that a scheduler would have made, on nodes of one instance type in three zones."""
    draw = random.Random(seed)
    whole = price_table().sizes[KIND].allocatable
    nodes: list[Node] = []
    workloads: list[Workload] = []
    placed: list[Pod] = []
    free: dict[str, list[int]] = {}
    while len(placed) < pods:
        replicas = min(pods - len(placed), draw.choice(REPLICAS))
        cpu, mebibytes = draw.choice(SIZES)
        workload = wire_workload(
            f"w{len(workloads)}",
            replicas=replicas,
            requests=amounts(cpu, mebibytes * MIB),
            max_unavailable="25%",
        )
        workloads.append(workload)
        names = []
        for _ in range(replicas):
            room = [n for n, f in free.items() if f[0] >= cpu and f[1] >= mebibytes * MIB and f[2]]
            if not room:
                number = len(nodes)
                zone = f"us-east-1{'abc'[number % 3]}"
                node = wire_node(
                    f"n{number}",
                    labels={
                        "node.kubernetes.io/instance-type": KIND,
                        "topology.kubernetes.io/zone": zone,
                    },
                    allocatable=amounts(whole.cpu, whole.memory, whole.pods),
                    created_at=NOW - timedelta(days=1),
                )
                nodes.append(node)
                room = [node.name]
                free[node.name] = [whole.cpu, whole.memory, whole.pods]
            names.append(name := draw.choice(room))
            left = free[name]
            free[name] = [left[0] - cpu, left[1] - mebibytes * MIB, left[2] - 1]
        placed += wire_pods(workload, *names)
    return wire_snapshot(
        nodes=tuple(nodes), workloads=tuple(workloads), pods=tuple(placed), usage=()
    )
