"""How long the plan of a drain takes, from memory: storms of 500 nodes, and 200 nodes of a cluster of 5,000.

Each workload has a Service, a budget and one ReplicaSet; in `zones` it must spread over the zones besides.
Each plan is made of a fresh observation. Run it from the repository:

    .venv/bin/python -m benchmarks.drain_plan [--runs 3]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import product
from typing import Final

from rich.console import Console

from benchmarks.output import machine, table
from benchmarks.placement import pod, workload_of
from plimsoll.domain.drain import ClusterPlan, plan_drain
from plimsoll.domain.kubernetes import (
    ZONE,
    Budget,
    LabelSelection,
    ReplicaSet,
    Scheduling,
    SpreadConstraint,
    Workload,
)
from plimsoll.domain.observation import Observation
from plimsoll.services.collector import collector_paused
from tests.support.builders import NOON, a_node
from tests.support.observations import interrupted

ZONES: Final = ("us-east-1a", "us-east-1b", "us-east-1c")


@dataclass(frozen=True)
class Size:
    """Nodes with a spot notice, other nodes that stand full, empty ones, and the workloads on them."""

    going: int
    staying: int
    empty: int
    workloads: int
    target: float
    """Seconds of a plan."""
    replicas: int = 50
    after: int = 0
    """Seconds from the notices to the plan: from 88 on the pods are past their eviction deadline."""

    @property
    def name(self) -> str:
        """Return what a table says of it."""
        return f"{self.going:,} of {self.going + self.staying + self.empty:,} nodes"


SIZES: Final = (
    Size(going=500, staying=0, empty=120, workloads=100, target=1.0),
    Size(going=500, staying=0, empty=120, workloads=500, replicas=10, after=90, target=1.0),
    Size(going=200, staying=4_700, empty=100, workloads=3_000, target=10.0),
)


def cluster(size: Size, state: str) -> Observation:
    """Return a cluster whose workloads stand on all nodes but the empty ones.

    No node has two pods of a workload, so that every workload has pods on nodes that go.
    """
    nodes = [
        interrupted(f"spot-{n}", zone=ZONES[n % 3], cpu="16", pods=58) for n in range(size.going)
    ]
    nodes += [
        a_node(f"node-{n}", zone=ZONES[n % 3], cpu="16", pods=58)
        for n in range(size.staying + size.empty)
    ]
    full = nodes[: size.going + size.staying]
    owned = [_spread(*workload_of(number), state) for number in range(size.workloads)]
    pods = [
        replace(
            pod(workload, replica_set, replica, full, "first"),
            node=full[(number + replica * (size.workloads + 1)) % len(full)].name,
        )
        for number, (workload, replica_set) in enumerate(owned)
        for replica in range(size.replicas)
    ]
    return Observation(
        cluster="harbor",
        nodes=nodes,
        pods=pods,
        workloads=[workload for workload, _ in owned],
        replica_sets={replica_set.ref: replica_set for _, replica_set in owned},
        budgets=[
            Budget(ref=w.ref, selector=w.selector, max_unavailable="25%", disruptions_allowed=12)
            for w, _ in owned
        ],
        label_selections=[LabelSelection(ref=w.ref, selector=w.selector) for w, _ in owned],
    )


def _spread(workload: Workload, replica_set: ReplicaSet, state: str) -> tuple[Workload, ReplicaSet]:
    zones = SpreadConstraint(max_skew=1, topology_key=ZONE, hard=True, selector=workload.selector)
    requests = workload.scheduling.requests
    scheduling = Scheduling(requests=requests, spread=(zones,) if state == "zones" else ())
    return replace(workload, scheduling=scheduling, annotations={}), replica_set


def planned(seen: Observation, after: int) -> ClusterPlan:
    """Return the plan so many seconds after the notices."""
    with collector_paused():  # as the service does
        return plan_drain(seen, NOON + timedelta(seconds=after))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    chosen = parser.parse_args()
    console = Console(width=130)
    console.print(f"{machine('plimsoll')}; {chosen.runs} runs each")
    headings = "cluster pods spread fastest slowest processor target actions"
    shown = table("plan of a drain", *headings.split())
    for size, state in product(SIZES, ("none", "zones")):
        took, used, done = [], [], Counter[str]()
        for _ in range(chosen.runs):
            seen = cluster(size, state)
            began, before = time.perf_counter(), time.process_time()
            plan = planned(seen, size.after)
            took.append(time.perf_counter() - began)
            used.append(time.process_time() - before)
            done = Counter(type(action).__name__ for action in plan.actions)
        shown.add_row(
            size.name,
            f"{size.workloads * size.replicas:,}",
            state,
            f"{min(took):.2f} s",
            f"{max(took):.2f} s",
            f"{statistics.median(used):.2f} s",
            f"{size.target:.0f} s",
            ", ".join(f"{count:,} {name}" for name, count in sorted(done.items())),
        )
    console.print(shown)


if __name__ == "__main__":
    main()
