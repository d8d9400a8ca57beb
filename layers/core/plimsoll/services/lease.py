"""The Lease of a cluster: one drain at a time plans and writes there.

It makes no write safe by itself, since the API server honours no fencing token: every write carries a
precondition of its own. One thing no precondition prevents: that two pods of a workload leave at once,
because each of two reconciles counts the other's pod as Ready. So whoever holds the Lease looks at
the clock before every observation and every wave of actions, and within large ones, and renews it
once a third of its time is over.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Self, override

from plimsoll.domain.errors import Temporary
from plimsoll.services.ports import Clock, ClusterApi

LEASE_SECONDS: Final = 10.0
"""How long a killed holder keeps the next one out."""


class LeaseLost(Temporary):
    """Somebody else has the Lease by now, so nothing more may be written."""


@dataclass(slots=True, kw_only=True)
class Lease(AbstractContextManager["Lease"]):
    """The Lease of one cluster, in the name of one holder; released at the end of the context."""

    api: ClusterApi
    clock: Clock
    cluster: str
    holder: str
    """Different for every invocation."""
    seconds: float = LEASE_SECONDS
    """How long it lasts once it was taken or renewed; may change meanwhile."""
    due: datetime | None = None
    """When it is to be renewed; None while it was never taken."""

    def take(self) -> bool:
        """Take the Lease; False while somebody else's is live."""
        due = self.clock.now() + timedelta(seconds=self.seconds / 3)
        taken = self.api.acquire(self.holder, self.seconds)
        if taken:
            self.due = due
        return taken

    def renew(self) -> None:
        """Make it last longer.

        Raises:
            LeaseLost: somebody else has it by now.
        """
        if not self.take():
            raise LeaseLost(f"the Lease of {self.cluster} went to another drain: try again")

    def keep(self) -> None:
        """Renew it if that is due: at a slow API server each call costs pods time.

        Raises:
            LeaseLost: somebody else has it by now.
        """
        if self.due is None or self.clock.now() >= self.due:
            self.renew()

    @override
    def __enter__(self) -> Self:
        return self

    @override
    def __exit__(self, *_: object) -> None:
        self.api.release_lease(self.holder)
