"""What goes wrong with functions and AWS while a fault of the scenario lasts.

Everything is drawn by the seed, in the order in which it happens: the same drill meets the same
faults. Those of one cluster are played by its rig cluster, those of notices by the timeline.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime
from typing import Final
from weakref import WeakKeyDictionary

from plimsoll_simulation.rigs.simulated.time import Invocation
from plimsoll_simulation.scenario.timeline import FaultEntry

LAST_CALL: Final = 40
"""A killed run dies after one of its first so many calls: by then most have begun to act."""


class FaultInjector:
    """The faults of functions and of AWS in one drill."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._begun: list[tuple[datetime, FaultEntry]] = []
        self._asked = 0
        self._doomed = 0
        self._dies_after: WeakKeyDictionary[Invocation, int] = WeakKeyDictionary()

    def begin(self, entry: FaultEntry, now: datetime) -> None:
        """Let a fault begin; it ends by itself."""
        self._begun.append((now, entry))

    def throttles(self, operation: str, now: datetime) -> bool:
        """Whether AWS turns this call away; `operation` as in `ec2:DescribeInstances`."""
        service = operation.partition(":")[0]
        for entry in self._lasting("aws-throttled", now):
            if entry.service == service:
                self._asked += 1
                if self._draw("throttle", self._asked).random() < entry.fraction:
                    return True
        return False

    def called(self, invocation: Invocation) -> None:
        """Take note of a call of a run, and end the run if it is time."""
        if self._last_call(invocation) == invocation.calls:
            invocation.kill()

    def ended(self, invocation: Invocation) -> None:
        """Take note that a run has done its work: it dies before it can say so, if it shall."""
        if self._last_call(invocation) is not None:
            invocation.kill()

    def _last_call(self, invocation: Invocation) -> int | None:
        """Return after which call a run dies, None for not at all."""
        if not any(
            entry.function == invocation.name
            for entry in self._lasting("function-killed", invocation.started)
        ):
            return None
        if invocation not in self._dies_after:
            self._doomed += 1
            draw = self._draw("killed", self._doomed)
            self._dies_after[invocation] = draw.randint(1, LAST_CALL)
        return self._dies_after[invocation]

    def _draw(self, *what: object) -> random.Random:
        return random.Random("/".join(map(str, (self._seed, *what))))  # noqa: S311 - a drill

    def _lasting(self, fault: str, when: datetime) -> Iterator[FaultEntry]:
        for begun, entry in self._begun:
            if entry.fault == fault and begun <= when < begun + entry.lasts:
                yield entry
