"""End a swap: the doomed pods go, because they are the cheapest to delete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from plimsoll.domain.actions.base import Wave
from plimsoll.domain.actions.writers import Writers
from plimsoll.domain.names import DELETION_COST
from plimsoll.domain.pods import Pod
from plimsoll.domain.workloads import Workload

CHEAPEST: Final = -2147483647
"""The lowest deletion cost that a 32-bit field takes, but one: -2147483648 has no negation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishSurge:
    """Make the doomed pods the cheapest to delete, then set the replicas back.

    Both in one action: a count put back before every cost is set would take pods that stay.
    Source: https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#pod-deletion-cost
    """

    verb: ClassVar[str] = "finish-surge"
    wave: ClassVar[Wave] = Wave.LEAVE

    workload: Workload
    replicas: int
    evictable: tuple[Pod, ...]
    reason: str

    @property
    def target(self) -> str:
        """The workload and the count."""
        return f"{self.workload.ref} back to {self.replicas} replicas"

    def perform(self, writers: Writers) -> None:
        """Patch each doomed pod, then the workload."""
        for pod in self.evictable:
            if pod.annotations.get(DELETION_COST) != str(CHEAPEST):
                writers.cluster.set_deletion_cost(pod, CHEAPEST)
        writers.cluster.scale(self.workload, self.replicas, None)
