"""Lets a cluster autoscaler scan a real control plane, beside everybody else."""

from __future__ import annotations

import threading
from datetime import timedelta

from plimsoll.domain.errors import Temporary
from plimsoll_testbed.rigs.emulated.walltime import WallTime
from plimsoll_testbed.rigs.simulated.autoscaler import ClusterAutoscaler


class Scans:
    """Scans again and again from a thread of its own: a look takes time, and the drill's goes on.

    Args:
        autoscaler: of the cluster.
        period: between two scans.
        time: of the drill, with the fleet in it.
    """

    def __init__(self, autoscaler: ClusterAutoscaler, period: timedelta, time: WallTime) -> None:
        self._autoscaler = autoscaler
        self._period = period
        self._time = time
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cluster autoscaler", daemon=True)
        self.error: Exception | None = None

    def start(self) -> None:
        """Begin with a scan now."""
        self._thread.start()

    def end(self) -> None:
        """End, after the scan that is under way."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                self._scan()
                self._ended.wait(self._period.total_seconds())
        except Exception as error:  # noqa: BLE001 - raised where the drill is run
            self.error = error

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
