"""Takes an API server away for a while: it is really killed, and really started again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from plimsoll.services.ports import Clock
from plimsoll_simulation.rigs.threads import Threads
from plimsoll_testbed.rigs.controlplane import ControlPlane

POLL_SECONDS: Final = 0.05


class Outages(Threads):
    """The outages of one API server, which may overlap.

    Args:
        plane: whose API server it is.
        clock: the real time.
        say: told when it answers again.
    """

    def __init__(self, plane: ControlPlane, clock: Clock, say: Callable[[str], None]) -> None:
        super().__init__()
        self._plane = plane
        self._clock = clock
        self._say = say
        self._start_takes = 0.0
        self._until: datetime | None = None
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def lasting(self) -> bool:
        """Whether the API server is away, or on its way back."""
        return self._thread is not None and self._thread.is_alive()

    def rehearse(self) -> float:
        """Restart it once, and return how many seconds the start takes: an outage ends on time."""
        self._plane.stop_api()
        self._start()
        return self._start_takes

    def begin(self, until: datetime) -> None:
        """Take it away, so that it answers again at about that time."""
        with self._lock:
            if self._until is not None:
                self._until = max(until, self._until)
                return
            self._until = until
            self._thread = self.spawn(partial(self._run, self._thread), "outage")

    def _run(self, before: threading.Thread | None) -> None:
        if before is not None:
            before.join()
        self._plane.stop_api()
        while not self._due():
            if self.ended.wait(POLL_SECONDS):
                return  # whoever stops the control plane takes it as it is
        self._start()
        self._say(f"the API server answers again; its start took {self._start_takes:.1f} s")

    def _due(self) -> bool:
        """Whether it has to start now; from then on a further outage is one of its own."""
        with self._lock:
            start = timedelta(seconds=self._start_takes)
            if self._until is not None and self._clock.now() < self._until - start:
                return False
            self._until = None
            return True

    def _start(self) -> None:
        began = time.monotonic()
        self._plane.start_api()
        self._start_takes = time.monotonic() - began
