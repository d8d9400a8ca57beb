"""Forget a pod that died with its instance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from plimsoll.domain.actions.base import AboutPod, Wave
from plimsoll.domain.actions.writers import Writers


@dataclass(frozen=True, slots=True, kw_only=True)
class ForceDelete(AboutPod):
    """Delete a pod at once, because its instance is proven gone.

    Nothing runs there any more, yet the API server counts it, Ready for most of a minute, and a
    StatefulSet waits for it to make its name anew. Never for an instance that may still run: two
    pods of one name could then write to one volume. Source:
    https://kubernetes.io/docs/tasks/run-application/force-delete-stateful-set-pod/
    """

    verb: ClassVar[str] = "force-delete"
    wave: ClassVar[Wave] = Wave.LEAVE

    def perform(self, writers: Writers) -> None:
        """Delete it without a grace period."""
        writers.cluster.delete(self.pod, 0)
