"""Puts the notices of a drill on the emulator's event bus, as they come due."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from itertools import batched
from typing import Any, Final, Self, override

from plimsoll.domain.errors import Refused
from plimsoll_simulation.rigs.simulated.time import VirtualClock
from plimsoll_simulation.rigs.threads import RetryQueue

BATCH: Final = 10
"""The most that one PutEvents takes."""
REACH: Final = timedelta(seconds=5)
"""How long an event that was taken may be on its way until what it causes is written down."""


class Bus(RetryQueue[str]):
    """Sends events from a thread of its own: whoever plays the timeline must not wait.

    Args:
        events: a boto3 client of EventBridge.
        clock: the drill's time, for events that come late.
        reach: how long an event may be on its way on this emulator.
        hears: called with each event that the bus took, for a program beside the stack.
    """

    def __init__(
        self,
        events: Any,
        clock: VirtualClock,
        reach: timedelta = REACH,
        hears: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__("drill events", self._put)
        self._hears = hears
        self._events = events
        self._clock = clock
        self._reach = reach
        self._taken: datetime | None = None

    @override
    def __enter__(self) -> Self:
        self.start()
        return self

    def send(self, body: str, *, delay_seconds: float = 0.0) -> None:
        """Put an event on the bus now, or later."""
        when: datetime = self._clock.now() + timedelta(seconds=delay_seconds)
        self.ask(body, partial(self._clock.at, when))

    @property
    def busy(self) -> bool:
        """Whether an event waits for the bus, or may not have come to anybody yet."""
        if self.open:
            return True
        return self._taken is not None and self._clock.now() < self._taken + self._reach

    def _put(self, bodies: list[str]) -> None:
        for batch in batched(bodies, BATCH, strict=False):
            entries = [_entry(json.loads(body)) for body in batch]
            answer = self._events.put_events(Entries=entries)
            if answer["FailedEntryCount"]:
                raise Refused(f"the event bus refused a notice: {answer['Entries']}")
            for body in batch:
                self._hears(body)
        self._taken = self._clock.now()


def _entry(event: dict[str, Any]) -> dict[str, Any]:
    return {
        "Source": event["source"],
        "DetailType": event["detail-type"],
        "Time": datetime.fromisoformat(event["time"]),
        "Resources": event["resources"],
        "Detail": json.dumps(event["detail"]),
    }
