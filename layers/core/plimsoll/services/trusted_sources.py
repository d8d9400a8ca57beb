"""Whose notices a stack takes."""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.domain.notices import InstanceNotice, ZonalShift
from plimsoll.domain.registry import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedSources:
    """Whose notices are taken."""

    region: str | None = None
    """Where the queue of notices is, for a body that does not say."""
    account: str | None = None
    """The stack's own; None: anybody's."""
    canary_word: str | None = None
    """What the schedule's canaries say; they are counted, and nobody waits for them."""
    drills: bool = False
    """Whether notices of the source `plimsoll.drill` are real."""

    def has_sent(self, notice: InstanceNotice | ZonalShift, cluster: Cluster) -> bool:
        """Whether a notice comes from where the cluster is: an id or a name alone proves nothing."""
        account = cluster.account or self.account
        return notice.region in {None, cluster.region} and account in {None, notice.account}
