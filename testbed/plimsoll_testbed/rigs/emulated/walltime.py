"""Lets a drill's clusters and fleets move with the wall clock.

Clusters and fleets live in virtual time on every rig. Here the wall clock pushes virtual time along:
from a thread, many times a second, and at every request before it is answered. One lock keeps them
consistent.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final, Self, override

from plimsoll.services.ports import Clock
from plimsoll_simulation.rigs.simulated.time import VirtualClock
from plimsoll_simulation.rigs.threads import Threads

BEAT: Final = 0.02
"""Seconds between two pushes: far below anything that a drill measures."""
PAST: Final = timedelta(minutes=15)
"""How long ago virtual time begins, so that a cluster can be made ready before the drill begins."""


class WallTime(Threads):
    """Pushes a virtual clock along the real one; use it as a context manager."""

    def __init__(self, wall: Clock) -> None:
        super().__init__()
        self._wall = wall
        self.lock: Final = threading.RLock()
        """Held by whoever reads the drill's clusters and fleets, or changes them."""
        self.clock: Final = VirtualClock(start=wall.now() - PAST)

    @override
    def __enter__(self) -> Self:
        self.catch_up()
        self.spawn(self._beat, "drill time")
        return self

    @override
    def end(self) -> None:
        super().end()
        self.clock.close()

    def catch_up(self) -> datetime:
        """Let everything happen that is due by now, and return that time."""
        with self.lock:
            self.clock.run_until(self._wall.now())
            return self.clock.now()

    @contextmanager
    def let_go(self) -> Iterator[None]:
        """Let others at clusters and fleets while the thread that holds the lock, once, waits for an answer."""
        self.lock.release()
        try:
            yield
        finally:
            self.lock.acquire()

    def _beat(self) -> None:
        while not self.ended.wait(BEAT):
            self.catch_up()
