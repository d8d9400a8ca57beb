"""Take our deletion cost off a pod that stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from plimsoll.domain.actions.base import AboutPod, Wave
from plimsoll.domain.actions.writers import Writers


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearCost(AboutPod):
    """Make a pod as dear to its ReplicaSet as any other again."""

    verb: ClassVar[str] = "clear-cost"
    wave: ClassVar[Wave] = Wave.CLOSE

    def perform(self, writers: Writers) -> None:
        """Patch the pod once."""
        writers.cluster.set_deletion_cost(self.pod, None)
