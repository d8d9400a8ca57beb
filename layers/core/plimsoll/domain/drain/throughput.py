"""How many pods an API server lets a drain evict in a second, and so when evictions have to begin.

The pods of a large storm reach their eviction deadlines in the same second. Told all at once, most are told too late and
do not stop in order before their instances go. So the calls are spread: each pod is told so long before its eviction
deadline as those that are to be told between take, the first of them while others still wait for replacements.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Final

MOST_EVICTIONS: Final = 1_000
"""How many pods one plan tells to stop at their eviction deadline. Fewer, and a busy API server waits for plans; more, and
it still evicts pods by a plan that is half a minute old, while replacements of others are Ready."""
AT_ONCE: Final = 100
"""So many are told within the margin before an instance goes: they need not be told earlier."""
SUSTAINED: Final = 0.8
"""Share of the time in which a reconcile plans and evicts: another follows it, and lists first."""
LEAST_REQUESTS: Final = 48
"""Fewer requests say nothing: their time is that of the slowest one."""


@dataclass(frozen=True, slots=True)
class Throughput:
    """What an API server took lately. Without memory of earlier plans it starts anew."""

    per_second: float = 45.0
    """Evictions a second, plans between them included. At first what a control plane on two cores was
    measured to take while it made the replacements and one reconcile followed another."""

    def measured(self, requests: int, seconds: float, planning: float) -> Throughput:
        """Return the throughput after a plan was carried out.

        Args:
            requests: how many its actions were.
            seconds: how long they took together.
            planning: seconds that observation and plan took before them: the next batch waits as long.
        """
        if requests < LEAST_REQUESTS or seconds <= 0:
            return self
        sustained = SUSTAINED * MOST_EVICTIONS / (planning + MOST_EVICTIONS * seconds / requests)
        return Throughput((self.per_second + sustained) / 2)

    def overdue(self, calls: Iterable[datetime], now: datetime) -> int:
        """Return how many pods must be told now, so that each is told by its eviction deadline.

        Those whose eviction deadline has come are among them.

        Args:
            calls: the eviction deadline of each pod that was not told yet.
            now: when the next of them can be told.
        """
        most = 0
        for told, call in enumerate(sorted(calls), 1):
            left = (call - now).total_seconds()
            later = AT_ONCE + self.per_second * left if left > 0 else 0.0
            most = max(most, ceil(told - later))
        return most
