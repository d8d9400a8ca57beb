"""The Lease of a cluster: one drain at a time plans and writes there.

It makes no write safe by itself, since the API server honours no fencing token: every write carries a
precondition of its own. One thing no precondition prevents: that two pods of a workload leave at once,
because each of two reconciles counts the other's pod as Ready. So whoever works under the Lease asks
`held` before every action, which costs no call: it is renewed beside the work, however long that takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.errors import PlimsollError, Temporary
from plimsoll.services.ports import LeaseKeeper, RepeatingClock

LEASE_SECONDS: Final = 10.0
"""How long a killed holder keeps the next one out."""
RENEWED_AFTER: Final = timedelta(seconds=LEASE_SECONDS / 3)
RETRY_SECONDS: Final = 1.0
"""From a renewal that failed to the next: an API server that is back is written to within this time."""


class LeaseLost(Temporary):
    """Somebody else has the Lease by now, so nothing more may be written."""


@dataclass(slots=True, kw_only=True)
class Lease:
    """The Lease of one cluster, in the name of one holder."""

    api: LeaseKeeper
    clock: RepeatingClock
    cluster: str
    holder: str
    """Different for every invocation."""
    _until: datetime | None = None
    """Until when nobody else may take it; None while it was never taken."""
    _due: datetime | None = None
    """When it is to be renewed."""
    _lost: bool = False
    _failure: PlimsollError | None = None
    """Why the last renewal failed, if it did."""

    def take(self) -> bool:
        """Take or renew the Lease; False while somebody else's is live."""
        # The time is read before the call, which may take seconds:
        # the Lease must not end later for us than for others.
        now = self.clock.now()
        taken = self.api.acquire(self.holder, LEASE_SECONDS)
        if taken:
            self._until = now + timedelta(seconds=LEASE_SECONDS)
            self._due, self._failure = now + RENEWED_AFTER, None
        return taken

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Renew it beside the caller, who took it, and give it back at the end.

        One that is not held any more is left to run out: the API server has not answered for seconds, or
        another has it.
        """
        try:
            with self.clock.repeating(self._renew, RETRY_SECONDS):
                yield
        finally:
            # The renewals have ended by now: a later one would take the Lease again.
            if self.held:
                self.api.release_lease(self.holder)

    @property
    def held(self) -> bool:
        """Whether it is ours for certain."""
        return not self._lost and self._until is not None and self.clock.now() < self._until

    def require(self) -> None:
        """Refuse to go on without it.

        Raises:
            LeaseLost: somebody else has it by now.
            Temporary: it has run out unrenewed; it may be ours again soon.
        """
        if self._lost:
            raise LeaseLost(f"the Lease of {self.cluster} went to another drain: try again")
        if not self.held:
            raise Temporary(
                f"the Lease of {self.cluster} has run out: {self._failure or 'it was not renewed'}"
            ) from self._failure

    def _renew(self) -> None:
        """Renew it if that is due. An API server that does not answer is asked again."""
        if self._lost or (self._due is not None and self.clock.now() < self._due):
            return
        try:
            # Only an answer proves the loss. After an error the
            # Lease may still be ours, and `held` ends by the clock.
            self._lost = not self.take()
        except PlimsollError as error:
            self._failure = error
            wanted = error.retry_after if isinstance(error, Temporary) else None
            self._due = self.clock.now() + timedelta(seconds=wanted or 0.0)
