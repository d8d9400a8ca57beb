"""The gangs that wait in a queue, those that are alike together: what is hopeless for one is so for all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from heapq import heapify, heappop, heappush
from operator import attrgetter

from plimsoll_batch.domain.admission.decisions import Waiting
from plimsoll_batch.domain.admission.fair_sharing_order import Age, age_of
from plimsoll_batch.domain.jobs import Gang, Shape
from plimsoll_batch.domain.quota import Queue, QueueOrder

type Kind = tuple[Shape, timedelta | None]
"""Gangs of one kind differ in priority and age only; so if the first cannot start, none can."""


class PendingQueue:
    """One queue's gangs, in order."""

    def __init__(self, queue: Queue, gangs: Iterable[Gang]) -> None:
        """Line up gangs."""
        self._queue = queue
        kinds: defaultdict[Kind, list[Gang]] = defaultdict(list)
        for gang in gangs:
            kinds[gang.shape, gang.limit].append(gang)
        for each in kinds.values():
            _sort_last_first(each)
        self._kinds: Mapping[Kind, list[Gang]] = kinds
        """The first of each kind last."""
        self._heap: list[tuple[Age, int]] = []
        self._by_number = list(self._kinds)
        self._parked: dict[Kind, str] = {}
        for number, kind in enumerate(self._by_number):
            self._heap.append((age_of(kinds[kind][-1]), number))
        heapify(self._heap)
        self._blocked: str | None = None

    def head(self) -> Gang | None:
        """Return the gang whose turn it is; None where none can start."""
        if self._blocked is not None or not self._heap:
            return None
        return self._kinds[self._by_number[self._heap[0][1]]][-1]

    def pop(self) -> None:
        """Take the head out of the line: something was decided for it."""
        number = heappop(self._heap)[1]
        gangs = self._kinds[self._by_number[number]]
        gangs.pop()
        if gangs:
            heappush(self._heap, (age_of(gangs[-1]), number))

    def park(self, reason: str) -> None:
        """Leave out the head and all that are alike; in strict order nobody overtakes them."""
        number = heappop(self._heap)[1]
        kind = self._by_number[number]
        self._parked[kind] = reason
        if self._queue.order is QueueOrder.STRICT_FIFO:
            head = self._kinds[kind][-1]
            self.block(f"{head} is first in a queue that is strictly first in, first out: {reason}")

    def block(self, reason: str) -> None:
        """Let nobody start any more."""
        self._blocked = reason

    def rest(self, otherwise: str) -> Iterator[Waiting]:
        """Yield who still waits, and why; `otherwise` is the reason of those whose turn never came."""
        for kind, gangs in self._kinds.items():
            if gangs:
                reason = self._parked.get(kind) or self._blocked or otherwise
                yield Waiting(queue=self._queue.name, gangs=tuple(reversed(gangs)), reason=reason)


def _sort_last_first(gangs: list[Gang]) -> None:
    """Sort by age, the oldest last.

    Sorts are stable, so this is the order of `age_of`, without a call and a tuple of Python for each gang.
    """
    # Sorted by the least important key first: each later sort is stable and keeps the order before it.
    gangs.sort(key=attrgetter("since", "uid"), reverse=True)
    gangs.sort(key=attrgetter("priority"))
    if any(gang.nominated for gang in gangs):
        gangs.sort(key=attrgetter("turn"), reverse=True)
