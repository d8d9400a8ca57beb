"""Virtual time: plain synchronous code sleeps here, and nobody waits.

Every invocation runs unchanged service code in a greenlet; `sleep` hands the processor to whoever
is due next. So invocations interleave exactly at their calls, always in the same order: by time,
then by who asked first. Sources (the fake cluster, the fleet) move on their own; at one instant
they go before invocations, so that a call sees clusters that have already reacted.

Source of the mechanism: https://greenlet.readthedocs.io/en/latest/
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, Protocol

import greenlet

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""Where virtual time starts, for every drill alike: reports must not depend on today."""

PARALLEL: Final = 16
"""Calls side by side: more than about sixteen buy nothing against one API server."""

_STUCK: Final = 100_000
"""Events at one instant after which something must be going round in circles."""


class Source(Protocol):
    """Something that moves by itself as time passes."""

    def step(self, now: datetime) -> datetime | None:
        """Do all that is due by `now`; return when there is more to do, None for never."""


class Invocation:
    """One run of a function: its calls are counted, and it can be killed between two of them."""

    def __init__(self, name: str, started: datetime) -> None:
        self.name = name
        self.started = started
        self.calls = 0
        self.last_call = ""
        """What it called last, for example `PATCH /api/v1/nodes/a`."""
        self.finished = False
        self.killed = False
        self.error: Exception | None = None

    def kill(self) -> None:
        """End it as Lambda ends a run: from its next call on it can change nothing any more."""
        self.killed = True

    def check(self) -> None:
        """Leave a killed run, past every `except Exception` on the way."""
        if self.killed:
            raise greenlet.GreenletExit


@dataclass(slots=True, eq=False)
class _Strand:
    """One line of execution of an invocation; workers give an invocation several."""

    invocation: Invocation
    body: greenlet.greenlet


@dataclass(order=True, slots=True)
class _Due:
    when: datetime
    sequence: int
    who: _Strand | Callable[[], None] = field(compare=False)


class VirtualClock:
    """The port `Clock` in virtual time, and the loop that drives it."""

    def __init__(self, start: datetime = EPOCH) -> None:
        self.on_call: Callable[[Invocation], None] | None = None
        """Called after each API call that an invocation made; it may kill the invocation."""
        self.on_end: Callable[[Invocation], None] | None = None
        """Called when an invocation has done its work, before `done` hears; it may kill it yet."""
        self.on_error: Callable[[Invocation], None] | None = None
        """Called when an invocation has ended with an exception."""
        self._now = start
        self._queue: list[_Due] = []
        self._sequence = 0
        self._sources: dict[Source, datetime | None] = {}
        self._running: _Strand | None = None
        self._strands: set[_Strand] = set()

    def now(self) -> datetime:
        """Return the virtual time."""
        return self._now

    @property
    def running(self) -> Invocation | None:
        """The invocation that acts now; None where something moves by itself."""
        return None if self._running is None else self._running.invocation

    def sleep(self, seconds: float) -> None:
        """Let virtual time pass for the caller; outside any invocation, for everything."""
        mine = self._running
        when = self._now + timedelta(seconds=max(0.0, seconds))
        if mine is None:
            self.run_until(when)
            return
        mine.invocation.check()
        self._push(when, mine)
        self._park(mine)

    def at(self, when: datetime, act: Callable[[], None]) -> None:
        """Call `act` at that time; it must not sleep."""
        self._push(max(when, self._now), act)

    def spawn(
        self,
        when: datetime,
        run: Callable[[], object],
        name: str,
        done: Callable[[Invocation], None] | None = None,
    ) -> Invocation:
        """Start an invocation at that time.

        An exception ends only the invocation and stands in its `error`; `done` is told, also
        after a kill.
        """
        invocation = Invocation(name, when)

        def body() -> None:
            try:
                invocation.check()
                run()
                if self.on_end is not None:
                    self.on_end(invocation)
            except Exception as error:  # noqa: BLE001 - a failed run is an outcome, as in Lambda
                invocation.error = error
            except greenlet.GreenletExit:
                pass
            finally:
                invocation.finished = True
            if invocation.error is not None and self.on_error is not None:
                self.on_error(invocation)
            if done is not None:
                done(invocation)

        self._push(max(when, self._now), self._strand(invocation, body))
        return invocation

    def every(self, period: timedelta, run: Callable[[], object], name: str) -> None:
        """Start an invocation now and after each period, whatever became of those before."""

        def again() -> None:
            self.spawn(self._now, run, name)
            self.at(self._now + period, again)

        self.at(self._now, again)

    @contextmanager
    def repeating(self, act: Callable[[], None], seconds: float) -> Iterator[None]:
        """Call `act` in a strand of the calling invocation, again and again, until the context ends."""
        mine = self._running
        if mine is None:
            raise RuntimeError("only an invocation has something done beside it")
        ended, acting = False, False
        waiting: list[_Strand] = []

        def repeat() -> None:
            nonlocal acting
            while True:
                self.sleep(seconds)
                if ended:
                    return
                acting = True
                try:
                    act()
                finally:
                    acting = False
                    for strand in waiting:
                        self._push(self._now, strand)

        self._push(self._now, self._strand(mine.invocation, repeat))
        try:
            yield
        finally:
            ended = True
            if acting and not mine.invocation.killed:
                waiting.append(mine)
                self._park(mine)

    def together(self, lanes: Sequence[Callable[[], None]]) -> None:
        """Run lanes side by side within the calling invocation; return when all have ended."""
        mine = self._running
        if mine is None or len(lanes) == 1:
            for lane in lanes:
                lane()
            return
        mine.invocation.check()
        open_lanes = len(lanes)

        def body(lane: Callable[[], None]) -> None:
            nonlocal open_lanes
            try:
                lane()
            finally:
                open_lanes -= 1
                if open_lanes == 0:
                    self._push(self._now, mine)

        for lane in lanes:
            self._push(self._now, self._strand(mine.invocation, partial(body, lane)))
        self._park(mine)

    def called(self, call: str) -> None:
        """Take note that the running invocation has made a call to the outside."""
        mine = self._running
        if mine is None:
            return
        mine.invocation.calls += 1
        mine.invocation.last_call = call
        if self.on_call is not None:
            self.on_call(mine.invocation)
        mine.invocation.check()

    def follow(self, source: Source) -> None:
        """Let a source move with time, from now on."""
        self._sources[source] = self._now

    def touch(self, source: Source) -> None:
        """Take note that a source was changed from outside: it is stepped before time goes on."""
        if source in self._sources:
            self._sources[source] = self._now

    def run_until(self, end: datetime) -> None:
        """Let everything happen that is due up to and including `end`."""
        if self._running is not None:
            raise RuntimeError("an invocation cannot drive the time that it runs in")
        instant, events = self._now, 0
        while True:
            source, due = self._next_source()
            first = self._queue[0].when if self._queue else None
            if source is not None and due is not None and (first is None or due <= first):
                if due > end:
                    break
                self._now = max(self._now, due)
                self._sources[source] = source.step(self._now)
            elif first is not None and first <= end:
                self._now = max(self._now, first)
                self._resume(heapq.heappop(self._queue).who)
            else:
                break
            events = events + 1 if self._now == instant else 0
            instant = self._now
            if events > _STUCK:
                raise RuntimeError(f"time stands still at {instant.isoformat()}")
        self._now = max(self._now, end)

    def close(self) -> None:
        """Drop every invocation that has not ended."""
        self._queue.clear()
        for strand in list(self._strands):
            strand.invocation.kill()
            if strand.body:
                strand.body.throw(greenlet.GreenletExit)
        self._strands.clear()
        self._queue.clear()

    def _next_source(self) -> tuple[Source | None, datetime | None]:
        best: Source | None = None
        when: datetime | None = None
        for source, due in self._sources.items():
            if due is not None and (when is None or due < when):
                best, when = source, due
        return best, when

    def _strand(self, invocation: Invocation, run: Callable[[], None]) -> _Strand:
        def body() -> None:
            try:
                run()
            finally:
                self._strands.discard(strand)

        strand = _Strand(invocation, greenlet.greenlet(body))
        self._strands.add(strand)
        return strand

    def _push(self, when: datetime, who: _Strand | Callable[[], None]) -> None:
        self._sequence += 1
        heapq.heappush(self._queue, _Due(when, self._sequence, who))

    def _park(self, mine: _Strand) -> None:
        parent = mine.body.parent
        if parent is None:
            raise RuntimeError("only an invocation can wait")
        parent.switch()
        mine.invocation.check()

    def _resume(self, who: _Strand | Callable[[], None]) -> None:
        if not isinstance(who, _Strand):
            who()
            return
        who.body.parent = greenlet.getcurrent()
        self._running = who
        try:
            who.body.switch()
        finally:
            self._running = None


class GreenletWorkers:
    """The port `Workers` in virtual time: as many calls side by side as the real ones make."""

    def __init__(self, clock: VirtualClock, parallel: int = PARALLEL) -> None:
        self._clock = clock
        self._parallel = parallel

    def run[T](self, tasks: Sequence[Callable[[], T]]) -> Sequence[T | Exception]:
        """Run all and return, in order, what each returned or raised."""
        results: dict[int, T | Exception] = {}
        waiting = iter(enumerate(tasks))

        def lane() -> None:
            for index, task in waiting:
                try:
                    results[index] = task()
                except Exception as error:  # noqa: BLE001 - the port returns what was raised
                    results[index] = error

        if tasks:
            self._clock.together([lane] * min(self._parallel, len(tasks)))
        return [results[index] for index in range(len(tasks))]
