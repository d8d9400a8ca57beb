"""Lets a cluster autoscaler scan a real control plane, beside everybody else."""

from __future__ import annotations

from datetime import timedelta

from plimsoll.domain.errors import Temporary
from plimsoll_testbed.rigs.emulated.walltime import WallTime
from plimsoll_testbed.rigs.simulated.autoscaler import ClusterAutoscaler
from plimsoll_testbed.rigs.threads import Threads


class Scans(Threads):
    """Scans again and again from a thread of its own: a scan takes time, and the drill's goes on.

    Args:
        autoscaler: of the cluster.
        period: between two scans.
        time: of the drill, with the fleet in it.
    """

    def __init__(self, autoscaler: ClusterAutoscaler, period: timedelta, time: WallTime) -> None:
        super().__init__()
        self._autoscaler = autoscaler
        self._period = period
        self._time = time

    def start(self) -> None:
        """Begin with a scan now."""
        self.spawn(self._run, "cluster autoscaler")

    def _run(self) -> None:
        while not self.ended.is_set():
            self._scan()
            self.ended.wait(self._period.total_seconds())

    def _scan(self) -> None:
        with self._time.lock:
            if not self._autoscaler.needed:
                return
        try:
            seen = self._autoscaler.api.observe()
        except Temporary:
            return
        with self._time.lock:
            self._time.catch_up()
            self._autoscaler.grow(seen)
