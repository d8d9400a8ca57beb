"""What is due later, in order of time and then of asking.

There are two kinds. A *process* timer is about what happens on a machine (a container exits, a
grace period ends) and goes off whatever the API server does. A *write* timer ends in a write, so it
waits while the API server is away and goes off when it is back.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import datetime

type Due = Callable[[datetime], None]


class Timers:
    """Two heaps of callbacks. Nothing is cancelled: a callback looks whether it still matters."""

    def __init__(self) -> None:
        self._order = 0
        self._process: list[tuple[datetime, int, Due]] = []
        self._write: list[tuple[datetime, int, Due]] = []

    def process(self, at: datetime, call: Due) -> None:
        """Call at a time, whether the API server is there or not."""
        self._add(self._process, at, call)

    def write(self, at: datetime, call: Due) -> None:
        """Call at a time, or as soon after it as the API server is there."""
        self._add(self._write, at, call)

    def next(self, *, writes: bool) -> datetime | None:
        """Return when the next callback is due."""
        heads = [heap[0][0] for heap in self._heaps(writes=writes) if heap]
        return min(heads, default=None)

    def pop(self, *, writes: bool) -> Due:
        """Take the next callback out."""
        heap = min((h for h in self._heaps(writes=writes) if h), key=lambda h: h[0][:2])
        return heapq.heappop(heap)[2]

    def _heaps(self, *, writes: bool) -> list[list[tuple[datetime, int, Due]]]:
        return [self._process, self._write] if writes else [self._process]

    def _add(self, heap: list[tuple[datetime, int, Due]], at: datetime, call: Due) -> None:
        self._order += 1
        heapq.heappush(heap, (at, self._order, call))
