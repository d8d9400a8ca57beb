"""Lets a drill's clusters and fleets move with the wall clock.

The world of a drill lives in virtual time on both rigs. Here virtual time is pushed along by the
real one: by a thread, many times a second, and by every request before it is answered. One lock
holds the world together.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from types import TracebackType
from typing import Final, Self, override

from plimsoll.services.ports import Clock
from plimsoll_testbed.rigs.simulated.time import VirtualClock

BEAT: Final = 0.02
"""Seconds between two pushes: far below anything that a drill measures."""
PAST: Final = timedelta(minutes=15)
"""How long ago virtual time begins, so that a cluster can be made ready before anybody looks."""


class WallTime(AbstractContextManager["WallTime"]):
    """Pushes a virtual clock along the real one; use it as a context manager."""

    def __init__(self, wall: Clock) -> None:
        self._wall = wall
        self.lock: Final = threading.RLock()
        """Held by everybody who looks at the world or changes it."""
        self.clock: Final = VirtualClock(start=wall.now() - PAST)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="drill time", daemon=True)
        self.error: Exception | None = None
        """What ended the beat, if something did."""

    @override
    def __enter__(self) -> Self:
        self.catch_up()
        self._thread.start()
        return self

    @override
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self.clock.close()

    def catch_up(self) -> datetime:
        """Let everything happen that is due by now, and return that time."""
        with self.lock:
            self.clock.run_until(self._wall.now())
            return self.clock.now()

    def _beat(self) -> None:
        while not self._stop.wait(BEAT):
            try:
                self.catch_up()
            except Exception as error:  # noqa: BLE001 - raised where the drill is run
                self.error = error
                return
