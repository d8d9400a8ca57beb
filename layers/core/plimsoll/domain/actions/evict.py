"""Evict a pod."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from plimsoll.domain.actions.base import AboutPod, Wave
from plimsoll.domain.actions.writers import Writers
from plimsoll.domain.errors import Blocked, Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Evict(AboutPod):
    """Ask a pod to leave, through its PodDisruptionBudgets.

    With `overrule`, a budget that still says no is passed by a delete: the instance takes the pod
    in any case, and a delete leaves it time to stop. The same holds for the 500 that a pod with
    two budgets always gets.
    Source: https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/
    """

    verb: ClassVar[str] = "evict"
    wave: ClassVar[Wave] = Wave.LEAVE

    grace_seconds: int | None = None
    """None keeps the pod's own grace period."""
    overrule: bool = False

    def perform(self, writers: Writers) -> None:
        """Evict it, or delete it where that is the last resort."""
        try:
            writers.cluster.evict(self.pod, self.grace_seconds)
        except (Blocked, Refused):
            if not self.overrule:
                raise
            writers.cluster.delete(self.pod, self.grace_seconds)
