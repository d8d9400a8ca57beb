"""How long a simulated drill takes: 10 minutes of virtual time, 100 nodes and 1,000 pods if not told.

A third of the spot nodes get their notice after a minute, the rest after four minutes; in the last
second the owner scales a workload, so that no responder ends early. Run it from the repository:

    .venv/bin/python -m benchmarks.simulated_drill [--runs 5] [--responder plimsoll] [--nodes 500 --pods 5000]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from rich.console import Console

from benchmarks.drills import drill, group, scaled, workload
from benchmarks.output import machine, spread, table
from plimsoll_simulation.rigs.registry import RESPONDERS
from plimsoll_simulation.rigs.simulated.rig import run
from plimsoll_simulation.scenario.drill import Drill

REPLICAS = 20
FAMILIES = ["m5", "m6i", "c5", "r5", "r6i"]


def read(nodes: int, pods: int) -> Drill:
    """Return a drill of one cluster, a fifth of it on demand."""
    most, each = nodes * 6 // 5, nodes * 4 // 5 // len(FAMILIES)
    spot = [group(f"spot-{family}", "spot", family, each, most) for family in FAMILIES]
    a_third: dict[str, Any] = {"capacity": "spot", "fraction": 0.33}
    return drill(
        horizon="10m",
        groups=[group("base", "on-demand", "m6i", nodes - each * len(FAMILIES), most), *spot],
        objects=[workload(number, REPLICAS) for number in range(pods // REPLICAS)],
        timeline=[
            {"at": "1m", "notice": "spot-interruption", "nodes": a_third},
            {"at": "4m", "notice": "spot-interruption", "nodes": {"capacity": "spot"}},
            scaled("9m59s", 24),
        ],
        of_cluster={"autoscaler": {"scan": "10s"}},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--responder", choices=RESPONDERS, action="append")
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--pods", type=int, default=1_000, help=f"in workloads of {REPLICAS}")
    chosen = parser.parse_args()
    played = read(chosen.nodes, chosen.pods)
    size = f"{chosen.nodes:,} nodes, {chosen.pods:,} pods"
    console = Console()
    console.print(f"{machine('greenlet', 'plimsoll')}; {chosen.runs} runs each")
    headings = ("median", "fastest", "slowest", "calls", "ready-s lost", "killed")
    shown = table(f"simulated drill: {size}, 10 minutes", "responder", *headings)
    for responder in chosen.responder or RESPONDERS:
        took, reports = [], []
        for _ in range(chosen.runs):
            began = time.perf_counter()
            reports.append(run(played, responder=responder, seed=0))
            took.append(time.perf_counter() - began)
        totals = reports[-1]["totals"]
        shown.add_row(
            responder,
            *spread(took),
            f"{sum(reports[-1]['api']['kubernetes'].values()):,}",
            f"{totals['ready_replica_seconds_lost']:,.0f}",
            f"{totals['pods_killed']}",
        )
    console.print(shown)


if __name__ == "__main__":
    main()
