"""What others do with the same cluster: a bare client that evicts everything, and another handler.

Control plane, pods, watches, instances and machine are those of the storm; the functions and the
emulated AWS are not there. Each is a user who may do everything and is served before all others, which
Plimsoll is not.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Protocol

from benchmarks.storms import bare
from benchmarks.storms.busy import busy
from benchmarks.storms.cluster import (
    LAST_CHANGES,
    SECONDS,
    Counting,
    Telling,
    open_headroom,
    watch_of,
)
from benchmarks.storms.handler import Handler
from benchmarks.storms.outcome import Outcome, emptied
from benchmarks.storms.scenario import CLUSTER, NOTICE_SECONDS, SPOT
from benchmarks.storms.times import Times
from plimsoll.adapters.clock import SystemClock
from plimsoll_testbed.measure.measure import Measurement
from plimsoll_testbed.model.machines import Machine
from plimsoll_testbed.rigs.access import Access
from plimsoll_testbed.rigs.cluster.clusters import ControlPlanes
from plimsoll_testbed.rigs.cluster.rig_cluster import COMMON_DRAIN, ControlPlaneRigCluster
from plimsoll_testbed.rigs.emulated.walltime import WallTime
from plimsoll_testbed.scenario.drill import Drill

POLL_SECONDS: Final = 0.25


class Rival(Protocol):
    """Somebody who reacts, and has everything loaded."""

    def go(self) -> None:
        """Let it begin, or let the notices come."""


type Start = Callable[
    [Access, Sequence[Machine], ControlPlaneRigCluster, WallTime], AbstractContextManager[Rival]
]


def evicts_all(
    way: Access, machines: Sequence[Machine], _cluster: ControlPlaneRigCluster, _time: WallTime
) -> AbstractContextManager[Rival]:
    """Cordon everything, then evict everything, with sixteen threads."""
    return bare.client(way, [machine.node for machine in machines], evict=True)


def handles(binary: Path, *, tuned: bool) -> Start:
    """Return aws-node-termination-handler in queue mode, by its defaults or with many workers."""

    def start(
        way: Access, machines: Sequence[Machine], cluster: ControlPlaneRigCluster, time: WallTime
    ) -> AbstractContextManager[Rival]:
        return Handler(binary, way, machines, cluster.fleet, time, tuned=tuned)

    return start


def play(drill: Drill, start: Start, *, default_rates: bool, beside: float) -> Outcome:
    """Return how a rival does beside a process that takes so many cores."""
    with ExitStack() as exits:
        exits.enter_context(busy(beside))
        return _Play(drill, exits).measure(start, default_rates=default_rates)


class _Play:
    def __init__(self, drill: Drill, exits: ExitStack) -> None:
        self._exits = exits
        self._began = time.monotonic()
        self._telling = Telling()
        self._time = WallTime(SystemClock())
        self._measurement = Measurement()
        self._clusters = ControlPlanes(
            drill=drill,
            seed=0,
            time=self._time,
            measurement=self._measurement,
            exits=exits,
            say=self._say,
        )

    def measure(self, start: Start, *, default_rates: bool) -> Outcome:
        self._clusters.make_ready()
        rig_cluster = self._clusters.rig_clusters[CLUSTER]
        open_headroom(rig_cluster, default_rates=default_rates)
        watch = self._exits.enter_context(watch_of(rig_cluster))
        machines = [m for m in rig_cluster.fleet.alive() if m.group.name == SPOT]
        way = self._clusters.open(CLUSTER, COMMON_DRAIN)
        rival = self._exits.enter_context(start(way, machines, rig_cluster, self._time))
        self._telling.storming = True
        began = self._notice(machines, rig_cluster)
        rival.go()
        end, counting = time.monotonic() + SECONDS, Counting()
        while not self._over(counting) and time.monotonic() < end:
            time.sleep(POLL_SECONDS)
        time.sleep(LAST_CHANGES)
        seen = watch.end()
        self._clusters.count_calls(began)
        noticed = {machine.node: began for machine in machines}
        return Outcome(
            times=Times.split(noticed, seen.cordoned, {}),
            noticed=began,
            emptied=emptied(noticed, seen),
            killed=watch.stops["killed"],
            seen=seen,
            calls=Counter(self._measurement.kubernetes_calls),
        )

    def _notice(self, machines: Sequence[Machine], cluster: ControlPlaneRigCluster) -> datetime:
        with self._time.lock:
            now = self._time.catch_up()
            self._measurement.begin(now)
            gone = now + timedelta(seconds=NOTICE_SECONDS)
            for machine in machines:
                self._measurement.noticed(now, machine.id, "spot-interruption", deadline=gone)
                cluster.fleet.end(machine.id, gone)
            self._time.clock.touch(cluster.fleet)
        return now

    def _over(self, counting: Counting) -> bool:
        with self._time.lock:
            return counting.done(self._measurement)

    def _say(self, what: str) -> None:
        self._telling.say(time.monotonic() - self._began, what)
