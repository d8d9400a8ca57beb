"""What the responder could know at a time: faults keep it from hearing, or make it hear late.

Rules ask here before they blame anybody for what could not be known. Nothing else is forgiven.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from plimsoll_testbed.model.hollow.settings import Settings
from plimsoll_testbed.scenario.scenario import FaultEntry

NOTICE: Final = re.compile(r"(?P<kind>[a-z-]+) for (?P<node>\S+) of \S+$")
"""How the timeline says that a notice is sent."""
LOST: Final = "a notice is lost"
"""How it says that the one sent last does not arrive."""
NO_NOTICE: Final = "none"
RETRY: Final = timedelta(seconds=60)
"""After how long a message comes back whose function died or failed, and a resync looks again."""
DELETED: Final = Settings().unreachable + Settings().node_deleted
"""After how long the Node of an instance that went is deleted."""
LOOK: Final = timedelta(seconds=5)
"""How long it takes from a cordon to the end of the first look, when nothing is broken."""
CALLS: Final = 10
"""How many calls, one after the other, lie between the look of a plan and its last write."""
_LATE: Final = frozenset({"notices-delayed", "function-killed", "aws-throttled", "api-server-slow"})


@dataclass(slots=True)
class Hearing:
    """What reaches the responder in one play of a storm."""

    faults: Sequence[FaultEntry]
    _sent: Counter[str] = field(default_factory=Counter)
    _lost: Counter[str] = field(default_factory=Counter)
    _last: str = ""

    def say(self, what: str) -> None:
        """Take in what the timeline says."""
        if what == LOST:
            self._lost[self._last] += 1
        elif (notice := NOTICE.match(what)) and notice["kind"] != NO_NOTICE:
            self._last = notice["node"]
            self._sent[self._last] += 1

    def heard_of(self, node: str) -> bool:
        """Whether any notice of a node arrives."""
        return self._sent[node] > self._lost[node]

    def heard_all_of(self, node: str) -> bool:
        """Whether every notice of a node arrives; only then its true end can be known."""
        return self._sent[node] > 0 and not self._lost[node]

    @property
    def slack(self) -> timedelta:
        """How much longer than usual it may take until something is known and written down."""
        late = [f for f in self.faults if f.fault in _LATE]
        return sum((f.lasts + f.delay + f.latency + RETRY for f in late), timedelta())

    def writes_a_report(self, cordoned: timedelta, gone: timedelta) -> bool:
        """Whether an interruption is reported that began and ended then, counted from time 0.

        A drain does not wait for a database that turns it away. And there must have been time: a
        Node that is deleted before its cordon can have led to a look is seen by nobody who could
        tell. Who finds a silent death is usually a resync, and the Node goes a minute after it.
        """
        stood = gone + DELETED - cordoned
        return stood > LOOK + self.slack and not any(f.service == "dynamodb" for f in self.faults)

    def observations_are_old(self, since_zero: timedelta) -> bool:
        """Whether what a plan saw is seconds old when it is carried out: the API server is slow.

        Then the cluster at the time of a write is not what the plan could know of.
        """
        return any(
            fault.at <= since_zero < fault.at + fault.lasts + CALLS * fault.latency
            for fault in self.faults
            if fault.fault == "api-server-slow"
        )


def since(zero: datetime | None, now: datetime) -> timedelta:
    """Return how long it is since time 0; nothing before it."""
    return timedelta() if zero is None else now - zero
