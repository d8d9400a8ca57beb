"""What a bare client does with the same cluster: it cordons everything, or evicts everything too.

Control plane, pods, watches and machine are those of the storm; the functions and the emulated AWS
are not there, and no instance goes when its time is over.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import Final

from benchmarks.storms import bare
from benchmarks.storms.cluster import LAST_CHANGES, Counting, Telling, open_headroom, watch_of
from benchmarks.storms.outcome import Outcome, emptied, left
from benchmarks.storms.scenario import CLUSTER, NOTICE_SECONDS, SPOT
from benchmarks.storms.times import Times
from plimsoll.adapters.clock import SystemClock
from plimsoll_testbed.measure.measure import Measurement
from plimsoll_testbed.model.machines import Machine
from plimsoll_testbed.rigs.cluster.clusters import ControlPlanes
from plimsoll_testbed.rigs.cluster.rig_cluster import COMMON_DRAIN
from plimsoll_testbed.rigs.emulated.walltime import WallTime
from plimsoll_testbed.scenario.drill import Drill

LIMIT_SECONDS: Final = 300.0
POLL_SECONDS: Final = 0.25


def bound(drill: Drill, *, evict: bool) -> Outcome:
    """Return how a bare client does; it has five minutes."""
    with ExitStack() as exits:
        return _Bound(drill, evict=evict, exits=exits).measure()


class _Bound:
    def __init__(self, drill: Drill, *, evict: bool, exits: ExitStack) -> None:
        self._evict = evict
        self._exits = exits
        self._began = time.monotonic()
        self._time = WallTime(SystemClock())
        self._measurement = Measurement()
        self._clusters = ControlPlanes(
            drill,
            seed=0,
            time=self._time,
            measurement=self._measurement,
            exits=exits,
            say=self._say,
        )

    def measure(self) -> Outcome:
        self._clusters.make_ready()
        rig_cluster = self._clusters.rig_clusters[CLUSTER]
        open_headroom(rig_cluster)
        watch = self._exits.enter_context(watch_of(rig_cluster))
        machines = [m for m in rig_cluster.fleet.alive() if m.group.name == SPOT]
        names = [machine.node for machine in machines]
        way = self._clusters.open(CLUSTER, COMMON_DRAIN)
        client = self._exits.enter_context(bare.client(way, names, evict=self._evict))
        began = self._notice(machines)
        client.go()
        end = time.monotonic() + LIMIT_SECONDS
        over = self._emptied() if self._evict else lambda: client.ended
        while not over() and time.monotonic() < end:
            time.sleep(POLL_SECONDS)
        complaint = client.wait(max(0.0, end - time.monotonic()))
        time.sleep(LAST_CHANGES)
        seen = watch.end()
        noticed = dict.fromkeys(names, began)
        return Outcome(
            times=Times.split(noticed, seen.cordoned, {}),
            emptied=emptied(noticed, seen),
            left=left(noticed, seen),
            seen=seen,
            calls=self._calls(began),
            complaints=[] if complaint is None else [f"the bare client: {complaint}"],
        )

    def _notice(self, machines: list[Machine]) -> datetime:
        """Let the measurement know what begins, for it tells when all is empty."""
        with self._time.lock:
            now = self._time.catch_up()
            self._measurement.begin(now)
            deadline = now + timedelta(seconds=NOTICE_SECONDS)
            for machine in machines:
                self._measurement.noticed(now, machine.id, "spot-interruption", deadline=deadline)
        return now

    def _emptied(self) -> Callable[[], bool]:
        counting = Counting()

        def over() -> bool:
            with self._time.lock:
                return counting.done(list(self._measurement.nodes.values()))

        return over

    def _calls(self, since: datetime) -> Counter[str]:
        self._clusters.count_calls(since)
        return self._measurement.kubernetes_calls

    def _say(self, what: str) -> None:
        Telling().say(time.monotonic() - self._began, what)
