"""What advice about a large cluster costs: one run of the analysis in a fresh process.

    python -m benchmarks.advice [--shape half-empty full affinity] [--nodes 830 4000]

Six pods a node, five pods a workload, three zones, a third of the nodes on-demand, and usage of a week in
which each workload uses a third of what it requests. The last row of each shape is as large as the 10 MiB of the
wire allow; above 5,000 pods no mix of instances is made.

    half-empty  two fifths of each node are requested: most nodes can go
    full        nine tenths of each node are requested: hardly a node can go, and each pod looks at all nodes
    affinity    half-empty, and each tenth workload has as much required node affinity as 10 MiB hold
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.output import machine, table
from plimsoll.domain.kubernetes import ZONE
from plimsoll_service.adapters.price_table import price_table
from plimsoll_service.domain.analysis import View, analyse
from plimsoll_service.domain.snapshots import (
    Span,
    WorkloadUsage,
    combined_rollup,
    rollup_of,
    unpacked,
)
from plimsoll_service.wire.documents import encode
from plimsoll_service.wire.snapshot import (
    Amounts,
    Container,
    ContainerUsage,
    LimitRanges,
    Node,
    Owner,
    Placing,
    Pod,
    Requirement,
    Snapshot,
    Usage,
    Workload,
)
from tests.support.snapshots import NOW

SIZES: Final = {"half-empty": (830, 4000), "full": (830, 4000), "affinity": (830, 1600)}
"""Nodes."""
REQUESTED: Final = {"half-empty": 0.4, "full": 0.9, "affinity": 0.4}
"""The share of a node that its pods request."""
PODS: Final = 6
"""On a node, at the bounds of the wire."""
REPLICAS: Final = 5
ZONES: Final = ("us-east-1a", "us-east-1b", "us-east-1c")
TYPES: Final = ("m5.2xlarge", "c5.2xlarge", "r5.2xlarge")
MIB: Final = 2**20
TERMS: Final = 20
VALUES: Final = 100
CREATED: Final = NOW - timedelta(days=30)


def nodes(number: int) -> Iterator[Node]:
    """Yield nodes of three types in three zones."""
    sizes = price_table().sizes
    for n in range(number):
        kind = TYPES[n % 3]
        whole = sizes[kind].allocatable
        capacity = "on-demand" if n % 9 < 3 else "spot"  # noqa: PLR2004 - a third, of each type
        yield Node(
            uid=f"n{n}",
            name=f"ip-10-{n // 65536}-{n // 256 % 256}-{n % 256}.ec2.internal",
            provider_id=f"aws:///{ZONES[n // 3 % 3]}/i-{n:017x}",
            labels={
                "node.kubernetes.io/instance-type": kind,
                "kubernetes.io/arch": "amd64",
                "karpenter.sh/capacity-type": capacity,
                "topology.kubernetes.io/region": "us-east-1",
                ZONE: ZONES[n // 3 % 3],
            },
            allocatable=Amounts(cpu_m=whole.cpu, memory=whole.memory, pods=whole.pods),
            created_at=CREATED,
        )


def placing(shape: str, number: int) -> Placing:
    """Return what the pods of a workload demand of a node."""
    if shape != "affinity" or number % 10:
        return Placing()
    names = (*TYPES, *(f"x{number % 7}.{n}xlarge" for n in range(VALUES - len(TYPES))))
    one = Requirement(key="node.kubernetes.io/instance-type", operator="In", values=names)
    zone = Requirement(key=ZONE, operator="In", values=ZONES)
    return Placing(node_terms=((one, zone),) * TERMS)


def cluster(shape: str, number: int) -> Snapshot:
    """Return a cluster of so many nodes."""
    standing = tuple(nodes(number))
    share = REQUESTED[shape] / PODS
    workloads, pods, usage = [], [], []
    for w in range(number * PODS // REPLICAS):
        size = (0.6, 0.8, 1.0, 1.2, 1.4)[w % 5] * share
        asked = Amounts(cpu_m=int(7900 * size), memory=int(15000 * size * (1 + w % 3 / 2)) * MIB)
        made = Container(name="app", requests=asked)
        workloads.append(
            Workload(
                uid=f"w{w}",
                kind="Deployment",
                namespace=f"team-{w % 50}",
                name=f"service-{w}",
                replicas=REPLICAS,
                ready=REPLICAS,
                requests=asked,
                template=(made,),
                limit_ranges=LimitRanges(),
                placing=placing(shape, w),
                created_at=CREATED,
            )
        )
        for r in range(REPLICAS):
            n = w * REPLICAS + r
            pods.append(
                Pod(
                    uid=f"p{n}",
                    namespace=f"team-{w % 50}",
                    name=f"service-{w}-{r}",
                    owner=Owner(kind="Deployment", name=f"service-{w}", uid=f"w{w}"),
                    node=standing[n * 7 % number].name,
                    requests=asked,
                    created_at=CREATED,
                )
            )
            used = ContainerUsage(name="app", cpu_m=asked.cpu_m // 3, memory=asked.memory // 3)
            usage.append(
                Usage(uid=f"p{n}", cpu_m=used.cpu_m, memory=used.memory, containers=(used,))
            )
    return Snapshot(
        cluster_id="a-1",
        epoch="e-1",
        sequence=1,
        taken_at=NOW,
        kubernetes="v1.36.3",
        nodes=standing,
        workloads=tuple(workloads),
        pods=tuple(pods),
        usage=tuple(usage),
    )


def week(seen: Snapshot) -> Mapping[str, WorkloadUsage]:
    """Return the usage of the workloads as if the minute of the snapshot had lasted for a week."""
    minute = rollup_of(seen)
    at = (Span.HOUR.start(NOW) - n * timedelta(hours=1) for n in range(24 * 30))
    whole = combined_rollup((replace(minute, start=t, last=t) for t in at), Span.DAY)
    assert whole is not None
    return unpacked(whole.usage)


def work(shape: str, number: int) -> None:
    """Analyse a cluster, and print what it cost: the cells of a row."""
    seen = cluster(shape, number)
    size = len(encode(seen)) / MIB
    used, view = week(seen), View(seen=seen)
    began = time.process_time()
    found = analyse(view, price_table(), week=used, earlier=used, idle={})
    seconds = time.process_time() - began
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    print(
        f"{len(seen.pods):,}|{size:.1f} MiB|{len(found.consolidations.found):,}|"
        f"{len(found.recommendations):,}|{seconds:.1f} s|{int(peak) / 1000:.0f} MB"
    )


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--shape", nargs="+", choices=list(REQUESTED), default=list(REQUESTED))
    options.add_argument(
        "--nodes", nargs="+", type=int, help="sizes of clusters; default: two for each shape"
    )
    options.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    said = options.parse_args()
    if said.one:
        work(said.one[0], int(said.one[1]))
        return
    console = Console(width=110)
    headings = "nodes pods snapshot nodes-to-go recommendations processor memory"
    shown = table(machine("msgspec"), "shape", *headings.split())
    for shape in said.shape:
        for number in said.nodes or SIZES[shape]:
            command = [sys.executable, "-m", "benchmarks.advice", "--one", shape, str(number)]
            found = subprocess.run(command, check=True, capture_output=True, text=True)
            shown.add_row(shape, f"{number:,}", *found.stdout.strip().split("|"))
    console.print(shown)


if __name__ == "__main__":
    main()
