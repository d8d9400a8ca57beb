"""How soon nodes are cordoned when all get their notice in the same second, on the emulated rig.

The time from event to cordon, as the hollow cluster's change stream sees it, is split at the start
of the function that handled the event, which its log tells. Beside it stands a bound: a process
with sixteen threads that does nothing but cordon as many nodes over the same server. Run it from
the repository, after `make build`:

    .venv/bin/python benchmarks/storm.py [--nodes 50] [--runs 3]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, override

import yaml
from rich.console import Console
from rich.table import Table

from plimsoll.adapters.clock import SystemClock
from plimsoll.drill.emulated.bus import Bus
from plimsoll.drill.emulated.rig import Emulation
from plimsoll.drill.emulated.stack import Stack
from plimsoll.drill.emulated.walltime import WallTime
from plimsoll.drill.measure import Measurement
from plimsoll.drill.report import Report
from plimsoll.drill.rigs import Quiet
from plimsoll.drill.script import Script, read_drill
from plimsoll.drill.simulated.stage import HollowStage
from plimsoll.drill.simulated.timeline import Timeline
from plimsoll.drill.warmup import warm_up
from plimsoll.hollow.serve import HollowServer
from plimsoll.hollow.store import Change

PODS = 10
THREADS = 16
PARTS = {
    "event to cordon": "total",
    "  before our code": "before",
    "  in our code": "inside",
    "    first batches, which make their clients": "first",
    "    later batches": "later",
}


def scenario(nodes: int) -> dict[str, object]:
    group = {
        "name": "spot",
        "kind": "asg",
        "capacity": "spot",
        "instanceType": "m5.2xlarge",
        "zones": ["us-east-1a", "us-east-1b", "us-east-1c"],
        "size": nodes,
        "max": 2 * nodes,
        "startup": "70s",
        "allocatable": {"cpu": "7910m", "memory": "29Gi", "pods": 58},
    }
    return {
        "apiVersion": "plimsoll.dev/v1",
        "kind": "Drill",
        "metadata": {"name": "storm"},
        "spec": {
            "horizon": "60s",
            "clusters": [
                {"name": "harbor", "nodeGroups": [group], "manifests": ["workloads.yaml"]}
            ],
            "timeline": [{"at": "2s", "notice": "spot-interruption", "nodes": {"group": "spot"}}],
        },
    }


def workload(number: int) -> dict[str, object]:
    labels = {"app": f"app-{number}"}
    requests = {"cpu": "700m", "memory": "1Gi"}
    container = {"name": "app", "image": "example/app", "resources": {"requests": requests}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"app-{number}"},
        "spec": {
            "replicas": PODS,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def read(nodes: int) -> Script:
    with tempfile.TemporaryDirectory() as folder:
        workloads = [workload(number) for number in range(nodes)]
        (Path(folder) / "workloads.yaml").write_text(yaml.safe_dump_all(workloads))
        (Path(folder) / "drill.yaml").write_text(yaml.safe_dump(scenario(nodes)))
        return read_drill(Path(folder) / "drill.yaml")


@dataclass(kw_only=True)
class Times:
    """Of the nodes of one run, in seconds."""

    nodes: int
    total: list[float] = field(default_factory=list)
    before: list[float] = field(default_factory=list)
    inside: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    """In our code, for nodes of batches that began before any node was cordoned."""
    later: list[float] = field(default_factory=list)


class Storm(Emulation):
    """A drill that ends as soon as every node is cordoned, and keeps the functions' log."""

    log: str = ""
    zero: datetime = datetime.min.replace(tzinfo=UTC)

    @override
    def _settled(self, timeline: Timeline, bus: Bus) -> bool:
        nodes = self._measurement.nodes.values()
        return bool(nodes) and all(node.cordoned is not None for node in nodes)

    @override
    def _report(self, stack: Stack) -> Report:
        time.sleep(1)  # a function's lines reach the log when it has ended
        self.log = stack.log.read_text(errors="replace")
        assert self._zero is not None
        self.zero = self._zero
        return super()._report(stack)


def storm(drill: Script, nodes: int) -> Times:
    with ExitStack() as exits:
        rig = Storm(drill, responder="plimsoll", seed=0, listener=Quiet(), exits=exits)
        report = rig.run()
    starts = started(rig.log)
    times = Times(nodes=nodes)
    rows = [row for row in report["nodes"] if row["cordoned"] is not None]
    soonest = min((row["cordoned"] or 0.0 for row in rows), default=0.0)
    for row in rows:
        noticed, cordoned = row["noticed"] or 0.0, row["cordoned"] or 0.0
        start = (starts[row["name"]] - rig.zero).total_seconds()
        times.total.append(cordoned - noticed)
        times.before.append(start - noticed)
        times.inside.append(cordoned - start)
        (times.first if start < soonest else times.later).append(cordoned - start)
    return times


def started(log: str) -> dict[str, datetime]:
    """Return for each node when the function started that cordoned it."""
    entries = list(entries_of(log))
    starts = {
        entry["function_request_id"]: datetime.strptime(
            entry["timestamp"], "%Y-%m-%d %H:%M:%S,%f%z"
        )
        for entry in entries
        if entry["message"] == "batch received"
    }
    return {
        entry["target"].split()[-1]: starts[entry["function_request_id"]]
        for entry in entries
        if entry["message"] == "acted" and entry.get("action") == "cordon"
    }


def entries_of(log: str) -> Iterator[dict[str, Any]]:
    for line in log.splitlines():
        if line.startswith('{"level"'):
            yield json.loads(line)


def bound(drill: Script, nodes: int) -> Times:
    """Let a bare client cordon the nodes of the same cluster over the same server."""
    wall, measurement = WallTime(SystemClock()), Measurement()
    [spec] = drill.scenario.clusters
    stage = HollowStage(spec, seed=0, clock=wall.clock, measurement=measurement)
    stage.set_up(drill.objects[spec.name])
    warm_up(wall.clock, measurement.not_ready)
    seen: dict[str, float] = {}
    stage.cluster.on_change(watching(seen))
    names = [machine.node for machine in stage.fleet.alive()]
    with (
        wall,
        HollowServer(
            stage.cluster,
            lock=wall.lock,
            now=wall.catch_up,
            changed=lambda: wall.clock.touch(stage.cluster),
        ) as server,
    ):
        script = str(Path(__file__).with_name("bare.py"))
        with subprocess.Popen(
            [sys.executable, script, server.url, server.token, str(THREADS), "--wait", *names],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as client:
            assert client.stdin is not None
            assert client.stdout is not None
            client.stdout.readline()
            began = time.perf_counter()
            client.stdin.write("go\n")
            client.stdin.close()
            client.wait()
    return Times(nodes=nodes, total=[at - began for at in seen.values()])


def watching(seen: dict[str, float]) -> Callable[[Change], None]:
    def see(change: Change) -> None:
        if change.resource == "nodes" and change.object["spec"].get("unschedulable"):
            seen.setdefault(change.object["metadata"]["name"], time.perf_counter())

    return see


def percentile(values: Iterable[float], share: float) -> float:
    """Return the nearest-rank percentile."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * int(share * 100) // 100) - 1)]


def row(runs: list[Times], part: str) -> list[str]:
    """Return median and spread over the runs of p50, p99 and the slowest, and the share."""
    runs = [run for run in runs if getattr(run, part)]
    if not runs:
        return ["-"] * 4
    cells = []
    for rank in (0.5, 0.99, 1.0):
        figures = [percentile(getattr(run, part), rank) for run in runs]
        cells.append(f"{statistics.median(figures):.3f} s ({min(figures):.3f}-{max(figures):.3f})")
    return [*cells, share_of(runs, part)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rig", choices=["emulated"], default="emulated")
    chosen = parser.parse_args()
    drill = read(chosen.nodes)
    load = os.getloadavg()[0]
    runs = [storm(drill, chosen.nodes) for _ in range(chosen.runs)]
    bounds = [bound(drill, chosen.nodes) for _ in range(chosen.runs)]
    table = Table(title=f"{chosen.nodes} nodes, {PODS * chosen.nodes} pods, one second")
    table.add_column("median of the runs (fastest-slowest)")
    for heading in ("p50", "p99", "max", "of the nodes"):
        table.add_column(heading, justify="right")
    for name, part in PARTS.items():
        table.add_row(name, *row(runs, part))
    table.add_row(f"bound: {THREADS} threads that only cordon", *row(bounds, "total"))
    console = Console(width=140)
    console.print(
        f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, "
        f"load {load:.2f} before; Python {platform.python_version()}, boto3 {version('boto3')}, "
        f"kubernetes {version('kubernetes')}, uvicorn {version('uvicorn')}, "
        f"plimsoll {version('plimsoll')}; {chosen.runs} runs"
    )
    console.print(table)


def share_of(runs: list[Times], part: str) -> str:
    return f"{sum(len(getattr(run, part)) for run in runs) / sum(run.nodes for run in runs):.0%}"


if __name__ == "__main__":
    main()
