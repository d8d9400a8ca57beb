"""Change a workload's replicas for a while, or put them back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from plimsoll.domain.actions.base import Wave
from plimsoll.domain.actions.writers import Writers
from plimsoll.domain.surge_replicas import SurgeReplicas
from plimsoll.domain.workloads import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Set the replicas of a workload together with the note of what to restore.

    `temporary` None means that the count is the owner's own again.
    """

    verb: ClassVar[str] = "scale"
    wave: ClassVar[Wave] = Wave.REPLACE

    workload: Workload
    replicas: int
    temporary: SurgeReplicas | None
    reason: str

    @property
    def target(self) -> str:
        """The workload and the count."""
        return f"{self.workload.ref} to {self.replicas} replicas"

    def perform(self, writers: Writers) -> None:
        """Patch the workload once."""
        note = None if self.temporary is None else self.temporary.to_record()
        writers.cluster.scale(self.workload, self.replicas, note)
