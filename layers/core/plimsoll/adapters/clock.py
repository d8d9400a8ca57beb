"""The real clock. The one module of the product that reads the time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Event, Thread


class SystemClock:
    """Wall time in UTC, and real waiting."""

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Wait; a negative time is none."""
        time.sleep(max(0.0, seconds))

    @contextmanager
    def repeating(self, act: Callable[[], None], seconds: float) -> Iterator[None]:
        """Call `act` on a thread of its own, again and again, until the context ends."""
        ended = Event()

        def repeat() -> None:
            while not ended.wait(seconds):
                act()

        thread = Thread(target=repeat, name="plimsoll-repeating", daemon=True)
        thread.start()
        try:
            yield
        finally:
            # First `set`, then `join`: a call of `act` that is under way ends, and none begins after the context.
            ended.set()
            thread.join()
