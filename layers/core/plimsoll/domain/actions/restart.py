"""Roll a workload over."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from plimsoll.domain.actions.base import Wave
from plimsoll.domain.actions.writers import Writers
from plimsoll.domain.workloads import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """Start a rolling restart, as `kubectl rollout restart` does.

    The annotation stays: taking it off would roll the workload over once more.
    """

    verb: ClassVar[str] = "restart"
    wave: ClassVar[Wave] = Wave.REPLACE

    workload: Workload
    at: datetime
    reason: str

    @property
    def target(self) -> str:
        """The workload."""
        return str(self.workload.ref)

    def perform(self, writers: Writers) -> None:
        """Patch the workload once."""
        writers.cluster.restart(self.workload, self.at)
