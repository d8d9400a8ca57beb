"""What the responder could know at a time: faults lose notices, and delay what arrives.

The rules ask here before they blame the responder for what it could not know. They excuse nothing
else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_simulation.scenario.timeline import FaultEntry

NOTICE: Final = re.compile(r"(?P<kind>[a-z-]+) for (?P<node>\S+) of \S+$")
"""How the timeline says that a notice is sent."""
LOST: Final = "a notice is lost"
"""How it says that the notice sent last does not arrive."""
NO_NOTICE: Final = "none"
RETRY: Final = timedelta(seconds=60)
"""How long until the message of a failed function is delivered again, and until the next resync."""
DELETED: Final = Settings().unreachable + Settings().node_deleted
"""How long after its instance is gone a Node is deleted."""
FIRST_RECONCILE: Final = timedelta(seconds=5)
"""From a cordon to the end of the first reconcile, when no fault is active."""
_UNREPORTED: Final = frozenset(
    {"api-server-down", "api-server-slow", "function-killed", "aws-throttled"}
)
_LATE: Final = frozenset({"notices-delayed", "function-killed", "aws-throttled", "api-server-slow"})


@dataclass(slots=True)
class NoticeDelivery:
    """Which notices reach the responder in one play of a storm, and how late."""

    faults: Sequence[FaultEntry]
    _sent: Counter[str] = field(default_factory=Counter)
    _lost: Counter[str] = field(default_factory=Counter)
    _last: str = ""

    def record(self, what: str) -> None:
        """Take in one line of the timeline."""
        if what == LOST:
            self._lost[self._last] += 1
        elif (notice := NOTICE.match(what)) and notice["kind"] != NO_NOTICE:
            self._last = notice["node"]
            self._sent[self._last] += 1

    def any_arrived(self, node: str) -> bool:
        """Whether any notice of a node arrives."""
        return self._sent[node] > self._lost[node]

    def all_arrived(self, node: str) -> bool:
        """Whether every notice of a node arrives; only then can its true end be known."""
        return self._sent[node] > 0 and not self._lost[node]

    @property
    def slack(self) -> timedelta:
        """How much later than usual something may be known and written down."""
        late = [f for f in self.faults if f.fault in _LATE]
        return sum((f.lasts + f.delay + f.latency + RETRY for f in late), timedelta())

    @property
    def requests_unreported(self) -> bool:
        """Whether what was requested may stand in no report, by which added nodes are known.

        While the API server is away they are requested by the node index; a function that is killed
        tells nothing, and so may one that a database keeps waiting.
        """
        return any(f.fault in _UNREPORTED for f in self.faults)

    def report_expected(self, cordoned: timedelta, gone: timedelta) -> bool:
        """Whether an interruption must be reported; both times count from time 0.

        A drain does not wait for a database that throttles. And there must have been time: if a Node
        is deleted before the first reconcile after its cordon, no function sees the interruption. A
        silent death is mostly found by a resync, and the Node is deleted a minute later.
        """
        stood = gone + DELETED - cordoned
        throttled = any(f.service == "dynamodb" for f in self.faults)
        return stood > FIRST_RECONCILE + self.slack and not throttled


def since(zero: datetime | None, now: datetime) -> timedelta:
    """Return the time since time 0; nothing before it."""
    return timedelta() if zero is None else now - zero
