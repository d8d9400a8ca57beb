"""Keeps each preemption in the history, from what the suspended Jobs themselves say.

The reason of a stop is written in the patch that suspends a Job. So whoever dies before the history has it loses
nothing: the next planner finds it on the Job.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.errors import PlimsollError
from plimsoll.services.ports import Telemetry
from plimsoll_batch.domain.jobs import PreemptionRecord
from plimsoll_batch.services.ports import PreemptionHistory

LATE: Final = timedelta(days=1)
"""So long after a preemption the history still takes it."""
MOST_WRITES: Final = 20
"""In one cycle; each is a call, and gangs wait meanwhile. The others follow in the next cycles."""
MOST_KNOWN: Final = 10_000
"""Records that are remembered as written, the last ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionLog:
    """Writes the history; lives as long as its process."""

    history: PreemptionHistory
    telemetry: Telemetry
    known: dict[tuple[str, str, datetime], None] = field(default_factory=dict)
    """Cluster, gang and time of what was written."""

    def keep(self, cluster: str, records: Iterable[PreemptionRecord], now: datetime) -> None:
        """Write what is not known to be written; what fails is tried again with the next call."""
        writes = 0
        for record in records:
            key = (cluster, record.gang, record.at)
            if key in self.known or not now - LATE < record.at <= now:
                continue
            if writes == MOST_WRITES:
                return
            writes += 1
            try:
                self.history.add(cluster, record)
            except PlimsollError as error:
                # The others would fail as well, each after its timeout.
                self.telemetry.warn("preemption not recorded", cluster=cluster, error=str(error))
                return
            self.known[key] = None
            if len(self.known) > MOST_KNOWN:
                del self.known[next(iter(self.known))]
