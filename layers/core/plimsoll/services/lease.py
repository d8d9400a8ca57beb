"""The Lease of a cluster: one drain at a time plans and writes there.

It makes no write safe by itself, since the API server honours no fencing token: every write carries a
precondition of its own. One thing no precondition prevents: that two pods of a workload leave at once,
because each of two reconciles counts the other's pod as Ready. So whoever holds the Lease renews it
before every wave of actions, and within large ones.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Self, override

from plimsoll.domain.errors import Temporary
from plimsoll.services.ports import ClusterApi

LEASE_SECONDS: Final = 10.0
"""How long a killed holder keeps the next one out."""


@dataclass(slots=True, kw_only=True)
class Lease(AbstractContextManager["Lease"]):
    """The Lease of one cluster, in the name of one holder; released at the end of the context."""

    api: ClusterApi
    cluster: str
    holder: str
    """Different for every invocation."""
    seconds: float = LEASE_SECONDS
    """How long it lasts once it was taken or renewed; may change meanwhile."""

    def take(self) -> bool:
        """Take the Lease; False while somebody else's is live."""
        return self.api.acquire(self.holder, self.seconds)

    def renew(self) -> None:
        """Make it last longer.

        Raises:
            Temporary: somebody else has it by now, so nothing more may be written.
        """
        if not self.take():
            raise Temporary(f"the Lease of {self.cluster} went to another drain: try again")

    @override
    def __enter__(self) -> Self:
        return self

    @override
    def __exit__(self, *_: object) -> None:
        self.api.release_lease(self.holder)
