"""Whose notices a stack takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from plimsoll.domain.notices import Canary, InstanceNotice, ZonalShift
from plimsoll.domain.registry import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedSources:
    """Whose notices are taken."""

    region: str | None = None
    """Where the queue of notices is, for a body that does not say."""
    account: str | None = None
    """The stack's own; None: anybody's."""
    canary_key: Callable[[], str] | None = None
    """Returns the secret that signs canaries; None: no canary is taken."""
    drills: bool = False
    """Whether notices of the source `plimsoll.drill` are real."""

    def has_sent(self, notice: InstanceNotice | ZonalShift, cluster: Cluster) -> bool:
        """Whether a notice comes from where the cluster is: an id or a name alone proves nothing."""
        account = cluster.account or self.account
        return notice.region in {None, cluster.region} and account in {None, notice.account}

    def canary_name(self, canary: Canary, now: datetime) -> str | None:
        """Return the name of a canary; None: it was not signed here, or too long ago.

        Raises:
            PlimsollError: the secret cannot be read.
        """
        return None if self.canary_key is None else canary.name(self.canary_key(), now)
