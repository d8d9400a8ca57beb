"""How many replacements may be under way at once, so that in a storm some nodes are finished.

Controllers make pods at a rate of their own, in an order of their own. If the pods of five hundred nodes are
all released at once, replacements come for a few pods of every node, and no node is empty in time.
So replacements are begun in turn (`plimsoll.domain.drain.rounds`), and no more than are made within some seconds.

How many that is nobody knows beforehand, so the bound follows what is seen, as congestion control
does: it rises by a step while what was begun is soon made, and at first by more, is halved when the API server asks for patience
or the queue becomes long, and never falls so far that controllers are idle between two
observations. Slow controllers alone do not lower it below what it is at first. What only waits for a new node, or starts on its node, is not under way in this sense: it is no work
for a controller. A small interruption never reaches the bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import inf
from typing import Final, TypeGuard

from plimsoll.domain.actions.actions import Action, Evict, Release

START: Final = 300
"""The bound where nothing was seen yet, and the least where controllers are slow: more than a few nodes hold, and less than half
a minute's work of controllers at their default rates. In a shorter queue fewer pods of a ReplicaSet share an update of its status, of which controllers may write
so many a second."""
STEP: Final = 100
"""By how much the bound rises, once for each observation."""
FAST: Final = 600
"""Up to here the bound doubles where controllers had nothing left to do: they may have been idle for half of the time."""
LOWEST: Final = 100
"""The least where the API server asks for patience: controllers at their default rates make so many in less than ten seconds."""
SURE: Final = 8
"""How many are begun after each observation, however many are said to be under way: what is seen of
them stands on objects that tenants write, and none of these may stop the drain of others."""
QUEUE_SECONDS: Final = 15.0
"""How long a replacement may wait until it is made, before the bound is lowered. A busy reconcile begins others every ten
seconds: with a shorter queue controllers would be idle in between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The bound, and what it was learned from. Without memory of earlier observations it starts anew."""

    bound: int = START
    queued: int = 0
    """Replacements that were begun and have no node yet, at the last observation or begun since."""
    at: datetime | None = None
    """Since when controllers work on so many: that observation, or later if they had too few until others were begun."""
    rate: float | None = None
    """How many replacements a second were made lately; None while nobody knows."""

    @property
    def allowance(self) -> int:
        """How many more may be begun now."""
        return max(SURE, self.bound - self.queued)

    @property
    def keeps_up(self) -> bool:
        """Whether controllers are known to make in time what was begun."""
        return self.rate is not None and self.queued <= self.rate * QUEUE_SECONDS

    def observed(self, queued: int, now: datetime) -> Pace:
        """Return the pace after an observation that found so many without a node."""
        seconds = 0.0 if self.at is None else (now - self.at).total_seconds()
        if not self.queued or seconds <= 0:
            return replace(self, queued=queued, at=now)
        made = max(0, self.queued - queued) / seconds
        rate = made if self.rate is None else (self.rate + made) / 2
        bound = self.bound
        if queued > rate * QUEUE_SECONDS:
            bound = min(bound, max(bound // 2, int(rate * QUEUE_SECONDS), START))
        elif queued <= bound // 2:
            bound = max(bound + STEP, 0 if queued else min(2 * bound, FAST))
        return Pace(bound=bound, queued=queued, at=now, rate=rate)

    def begun(self, count: int, now: datetime, *, throttled: bool) -> Pace:
        """Return the pace after so many were begun, and the API server perhaps asked for patience.

        The time in which controllers had nothing left to do says nothing of how fast they are.
        """
        bound = max(self.bound // 2, LOWEST) if throttled else self.bound
        at = now
        if self.at is not None and self.queued:
            busy = self.queued / self.rate if self.rate else inf
            at -= timedelta(seconds=min(busy, (now - self.at).total_seconds()))
        return replace(self, queued=self.queued + count, bound=bound, at=at)

    def seconds_until(self, place: int) -> float | None:
        """Return in how long one with so many before it, not begun either, is made; None if unknown."""
        return (self.queued + place) / self.rate if self.rate else None


def begins(action: Action) -> TypeGuard[Release | Evict]:
    """Whether an action makes controllers create a pod: it releases one, or evicts one not released."""
    match action:
        case Release():
            return True
        case Evict(pod=pod):
            return not pod.released
        case _:
            return False
