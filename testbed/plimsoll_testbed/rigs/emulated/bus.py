"""Puts the notices of a drill on the emulator's event bus, as they come due."""

from __future__ import annotations

import json
import queue
import threading
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Self, override

from plimsoll.domain.errors import Refused
from plimsoll_testbed.rigs.simulated.time import VirtualClock
from plimsoll_testbed.rigs.threads import Threads

BATCH: Final = 10
"""The most that one PutEvents takes."""
REACH: Final = timedelta(seconds=5)
"""How long an event that was taken may be on its way until what it causes is written down."""


class Bus(Threads):
    """Sends events from a thread of its own: whoever plays the timeline must not wait.

    Args:
        events: a boto3 client of EventBridge.
        clock: the drill's time, for events that come late.
        reach: how long an event may be on its way on this emulator.
    """

    def __init__(self, events: Any, clock: VirtualClock, reach: timedelta = REACH) -> None:
        super().__init__()
        self._events = events
        self._clock = clock
        self._reach = reach
        self._waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._in_flight = 0
        self._taken: datetime | None = None

    @override
    def __enter__(self) -> Self:
        self.spawn(self._run, "drill events")
        return self

    @override
    def end(self) -> None:
        self._waiting.put(None)
        super().end()

    def send(self, body: str, *, delay_seconds: float = 0.0) -> None:
        """Put an event on the bus now, or later."""
        with self._lock:
            self._in_flight += 1
        when: datetime = self._clock.now() + timedelta(seconds=delay_seconds)
        self._clock.at(when, partial(self._waiting.put, body))

    @property
    def busy(self) -> bool:
        """Whether an event waits for the bus, or may not have come to anybody yet."""
        with self._lock:
            late = self._taken is not None and self._clock.now() < self._taken + self._reach
            return late or self._in_flight > 0

    def _run(self) -> None:
        while (body := self._waiting.get()) is not None:
            batch = [body]
            while len(batch) < BATCH and not self._waiting.empty():
                more = self._waiting.get()
                if more is None:
                    return
                batch.append(more)
            self._put(batch)
            with self._lock:
                self._in_flight -= len(batch)
                self._taken = self._clock.now()

    def _put(self, bodies: list[str]) -> None:
        answer = self._events.put_events(Entries=[_entry(json.loads(body)) for body in bodies])
        if answer["FailedEntryCount"]:
            raise Refused(f"the event bus refused a notice: {answer['Entries']}")


def _entry(event: dict[str, Any]) -> dict[str, Any]:
    return {
        "Source": event["source"],
        "DetailType": event["detail-type"],
        "Time": datetime.fromisoformat(event["time"]),
        "Resources": event["resources"],
        "Detail": json.dumps(event["detail"]),
    }
