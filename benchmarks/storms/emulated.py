"""A storm on the emulated rig: the cluster is a hollow one, and only cordoning is measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import override

from rich.table import Table

from benchmarks.output import table
from benchmarks.storms import bare
from benchmarks.storms.functionlog import started
from benchmarks.storms.scenario import PODS, cordon_drill
from benchmarks.storms.tables import OF_RUNS
from benchmarks.storms.times import HEADINGS, Times, row, rows
from plimsoll.adapters.clock import SystemClock
from plimsoll_testbed.measure.measure import Measurement
from plimsoll_testbed.measure.report import Report
from plimsoll_testbed.model.hollow.serve import HollowServer
from plimsoll_testbed.model.hollow.store import Change
from plimsoll_testbed.rigs.access import Access
from plimsoll_testbed.rigs.emulated.rig import Emulation
from plimsoll_testbed.rigs.emulated.walltime import WallTime
from plimsoll_testbed.rigs.simulated.rig_cluster import HollowRigCluster
from plimsoll_testbed.rigs.warmup import warm_up
from plimsoll_testbed.scenario.drill import Drill


class Storm(Emulation):
    """A drill that ends as soon as every node is cordoned, and keeps the functions' log."""

    log: str = ""

    def moment(self, seconds: float) -> datetime:
        """Return when it was so many seconds after time 0."""
        assert self._zero is not None
        return self._zero + timedelta(seconds=seconds)

    @override
    def _settled(self) -> bool:
        nodes = self.measurement.nodes.values()
        return bool(nodes) and all(node.cordoned is not None for node in nodes)

    @override
    def report(self, *, settled: bool) -> Report:
        time.sleep(1)  # a function's lines reach the log when it has ended
        self.log = self._stack.log.read_text(errors="replace")
        return super().report(settled=settled)


def measure(nodes: int, runs: int) -> Table:
    """Return the table of so many runs."""
    drill = cordon_drill(nodes)
    storms = [_storm(drill) for _ in range(runs)]
    bounds = [_bound(drill) for _ in range(runs)]
    shown = table(f"{nodes} nodes, {PODS * nodes} pods, one second", OF_RUNS, *HEADINGS)
    for cells in rows(storms):
        shown.add_row(*cells)
    name = f"bound: {bare.THREADS} threads that only cordon"
    shown.add_row(name, *row([(bound.nodes, bound.total) for bound in bounds]))
    return shown


def _storm(drill: Drill) -> Times:
    with Storm(drill, responder="plimsoll", seed=0) as rig:
        report = rig.run()
    return Times.split(
        {row["name"]: rig.moment(row["noticed"]) for row in report["nodes"]},
        {
            r["name"]: rig.moment(r["cordoned"])
            for r in report["nodes"]
            if r["cordoned"] is not None
        },
        started(rig.log),
    )


def _bound(drill: Drill) -> Times:
    """Let a bare client cordon the nodes of the same cluster over the same server."""
    wall, measurement = WallTime(SystemClock()), Measurement()
    [spec] = drill.scenario.clusters
    rig_cluster = HollowRigCluster(spec, seed=0, clock=wall.clock, measurement=measurement)
    rig_cluster.set_up(drill.objects[spec.name])
    warm_up(wall.clock, measurement.not_ready)
    seen: dict[str, float] = {}
    rig_cluster.cluster.on_change(_watching(seen))
    names = [machine.node for machine in rig_cluster.fleet.alive()]
    with (
        wall,
        HollowServer(
            rig_cluster.cluster,
            lock=wall.lock,
            now=wall.catch_up,
            changed=lambda: wall.clock.touch(rig_cluster.cluster),
        ) as server,
        bare.client(Access(url=server.url, token=server.token), names) as client,
    ):
        began = time.perf_counter()
        client.go()
        client.wait(seconds=60)
    return Times(nodes=len(names), total=[at - began for at in seen.values()])


def _watching(seen: dict[str, float]) -> Callable[[Change], None]:
    def see(change: Change) -> None:
        if change.resource == "nodes" and change.object["spec"].get("unschedulable"):
            seen.setdefault(change.object["metadata"]["name"], time.perf_counter())

    return see
