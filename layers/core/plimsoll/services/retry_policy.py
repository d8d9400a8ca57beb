"""How often a message is delivered, after what pauses, and which errors end that at once.

The functions and the simulated queues both act on these policies, and a test compares them with the
template, which tells SQS the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from plimsoll.domain.errors import BadInput, NotFound, Temporary
from plimsoll.domain.interruptions import NewerRecord

MAX_PAUSE_SECONDS: Final = 30
"""The longest pause that is granted, however much patience the other side asks for. A shorter one than ours is not: all
attempts would be over before the notice is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """What becomes of a message whose handling failed."""

    attempts: int
    """The queue's maxReceiveCount."""
    visibility_seconds: int
    """The queue's VisibilityTimeout: the pause after a run that died, and where `pauses` is empty."""
    pauses: tuple[int, ...] = ()
    """Seconds until each next attempt; the last one repeats."""
    hopeless: tuple[type[Exception], ...] = ()
    """Errors that no further attempt can cure."""

    def pause_seconds(self, error: Exception, *, attempts: int) -> int | None:
        """Return the seconds until a message comes back; None where it is to be set aside.

        Args:
            error: what its handling failed with.
            attempts: how often it was delivered, this time included.
        """
        if attempts >= self.attempts or isinstance(error, self.hopeless):
            return None
        if not self.pauses:
            return self.visibility_seconds
        pause = self.pauses[min(attempts, len(self.pauses)) - 1]
        wanted = error.retry_after if isinstance(error, Temporary) else None
        return max(pause, min(MAX_PAUSE_SECONDS, int(wanted or 0)))


NOTICES: Final = RetryPolicy(
    attempts=14,
    visibility_seconds=30,
    pauses=(1, 2, 3, 5, 8, 15),
    hopeless=(BadInput, NotFound, NewerRecord),
)
"""A notice lives for two minutes, so it comes back within seconds, and all attempts together outlast
it. A refusal is not hopeless: an API server that has just started refuses everybody (403) until it
has read who may do what."""

WAKE_UPS: Final = RetryPolicy(attempts=3, visibility_seconds=190)
"""Wake-ups come in series, so one that failed is in no hurry. Whatever it failed with, it comes back,
and the dead-letter queue tells a person of the third failure."""

RESYNCS: Final = RetryPolicy(attempts=1, visibility_seconds=55)
"""The next minute's message is the second attempt. One that died is kept in the dead-letter queue, which
tells a person of which cluster it was."""

URGENT_WAKE_UPS: Final = (*range(0, 130, 10), 150, 180)
"""Seconds from a notice with a deadline to its wake-ups. A reconcile works for `RECONCILE_SECONDS`,
so most find another at work; those after the deadline clean up."""
SERIES_SHARED: Final = timedelta(seconds=10)
"""A series serves notices that come so much later too: its wake-ups come closely beyond their deadline."""
SLOW_WAKE_UPS: Final = tuple(range(0, 60, 10))
"""The same without a deadline: after these the resync wakes the cluster every minute in which something
can be done. A deadline may be hours away, and the eviction deadline of its pods still falls between two of them."""
RECONCILE_SECONDS: Final = 48.0
"""How long a reconcile works: no longer, so that where more clusters drain than functions run, each has its turn
before the deadline."""
HURRIED_SECONDS: Final = 170.0
"""How long it works while a plan is hurried: within the function's timeout. The next reconcile would list everything
first, tell nobody meanwhile, and not know how fast replacements are made."""
