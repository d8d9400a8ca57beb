"""How long a simulated drill takes: 10 minutes of virtual time, 100 nodes and 1,000 pods if not told.

A third of the spot nodes get their notice after a minute, the rest after four minutes; in the last
second the owner scales a workload, so that no responder ends early. Run it from the repository:

    .venv/bin/python -m benchmarks.simulated_drill [--runs 5] [--responder plimsoll]
        [--nodes 500 --pods 5000] [--profile]
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import tempfile
import time
from pathlib import Path

import yaml
from rich.console import Console

from benchmarks.output import machine, spread, table
from plimsoll_testbed.measure.report import Report
from plimsoll_testbed.rigs.registry import RESPONDERS
from plimsoll_testbed.rigs.simulated.rig import run
from plimsoll_testbed.scenario.drill import Drill, read_drill

TARGET_SECONDS = {(100, 1_000): 10.0, (500, 5_000): 60.0}
"""What is aimed at, by nodes and pods."""
REPLICAS = 20
ZONES = ["us-east-1a", "us-east-1b", "us-east-1c"]
FAMILIES = ["m5", "m6i", "c5", "r5", "r6i"]


def group(name: str, capacity: str, family: str, size: int, most: int) -> dict[str, object]:
    return {
        "name": name,
        "kind": "asg",
        "capacity": capacity,
        "instanceType": f"{family}.2xlarge",
        "zones": ZONES,
        "size": size,
        "max": most,
        "startup": "50s..90s",
        "allocatable": {"cpu": "7910m", "memory": "29Gi", "pods": 58},
    }


def scenario(nodes: int) -> dict[str, object]:
    """Describe one cluster, a fifth of it on demand."""
    most, each = nodes * 6 // 5, nodes * 4 // 5 // len(FAMILIES)
    spot = [group(f"spot-{family}", "spot", family, each, most) for family in FAMILIES]
    base = group("base", "on-demand", "m6i", nodes - each * len(FAMILIES), most)
    return {
        "apiVersion": "plimsoll.dev/v1",
        "kind": "Drill",
        "metadata": {"name": "benchmark"},
        "spec": {
            "horizon": "10m",
            "clusters": [
                {
                    "name": "harbor",
                    "nodeGroups": [base, *spot],
                    "manifests": ["workloads.yaml"],
                    "autoscaler": {"scan": "10s"},
                }
            ],
            "timeline": [
                {
                    "at": "1m",
                    "notice": "spot-interruption",
                    "nodes": {"capacity": "spot", "fraction": 0.33},
                },
                {"at": "4m", "notice": "spot-interruption", "nodes": {"capacity": "spot"}},
                {
                    "at": "9m59s",
                    "scale": {
                        "kind": "Deployment",
                        "namespace": "default",
                        "name": "app-0",
                        "replicas": 24,
                    },
                },
            ],
        },
    }


def workload(number: int, replicas: int) -> dict[str, object]:
    labels = {"app": f"app-{number}"}
    container = {
        "name": "app",
        "image": "example/app",
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"app-{number}"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def read(nodes: int = 100, pods: int = 1_000) -> Drill:
    with tempfile.TemporaryDirectory() as folder:
        workloads = [workload(number, REPLICAS) for number in range(pods // REPLICAS)]
        (Path(folder) / "workloads.yaml").write_text(yaml.safe_dump_all(workloads))
        (Path(folder) / "drill.yaml").write_text(yaml.safe_dump(scenario(nodes)))
        return read_drill(Path(folder) / "drill.yaml")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--responder", choices=RESPONDERS, action="append")
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--pods", type=int, default=1_000, help=f"in workloads of {REPLICAS}")
    parser.add_argument("--profile", action="store_true", help="say where the time goes, run once")
    chosen = parser.parse_args()
    drill = read(chosen.nodes, chosen.pods)
    if chosen.profile:
        profile(drill, (chosen.responder or RESPONDERS)[0])
        return
    size = f"{chosen.nodes:,} nodes, {chosen.pods:,} pods"
    target = TARGET_SECONDS.get((chosen.nodes, chosen.pods))
    console = Console()
    console.print(
        f"{machine('greenlet', 'plimsoll')}; {chosen.runs} runs each"
        + (f"; target {target:g} s" if target else "")
    )
    headings = ("median", "fastest", "slowest", "calls", "ready-s lost", "killed")
    shown = table(f"simulated drill: {size}, 10 minutes", "responder", *headings)
    for responder in chosen.responder or RESPONDERS:
        took, report = [], None
        for _ in range(chosen.runs):
            began = time.perf_counter()
            report = run(drill, responder=responder, seed=0)
            took.append(time.perf_counter() - began)
        shown.add_row(responder, *figures(took, report))
    console.print(shown)


def profile(drill: Drill, responder: str) -> None:
    profiler = cProfile.Profile()
    profiler.runcall(run, drill, responder=responder, seed=0)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(30)


def figures(took: list[float], report: Report | None) -> list[str]:
    if report is None:
        return ["-"] * 6
    totals = report["totals"]
    return [
        *spread(took),
        f"{sum(report['api']['kubernetes'].values()):,}",
        f"{totals['ready_replica_seconds_lost']:,.0f}",
        f"{totals['pods_killed']}",
    ]


if __name__ == "__main__":
    main()
