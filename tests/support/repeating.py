"""What is done beside a caller in a test: while its clock lets time pass, in the same thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta


class VirtualTime:
    """Implements `plimsoll.services.ports.RepeatingClock`."""

    def __init__(self, now: datetime) -> None:
        self.time = now
        self._due: dict[Callable[[], None], tuple[datetime, timedelta]] = {}

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        end = self.time + timedelta(seconds=seconds)
        while due := [(when, act) for act, (when, _) in self._due.items() if when <= end]:
            when, act = min(due, key=lambda each: each[0])
            self.pass_to(max(when, self.time))
            act()
            self._due[act] = self.time + self._due[act][1], self._due[act][1]
        self.pass_to(end)

    def pass_to(self, time: datetime) -> None:
        """Let time pass, at once."""
        self.time = time

    @contextmanager
    def repeating(self, act: Callable[[], None], seconds: float) -> Iterator[None]:
        period = timedelta(seconds=seconds)
        self._due[act] = self.time + period, period
        try:
            yield
        finally:
            del self._due[act]
