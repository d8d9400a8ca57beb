"""Give a node back whose interruption was called off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from plimsoll.domain.actions.base import AboutNode, Wave
from plimsoll.domain.actions.writers import Writers


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncordon(AboutNode):
    """Take cordon, taint and record off a node."""

    verb: ClassVar[str] = "uncordon"
    wave: ClassVar[Wave] = Wave.CORDON

    def perform(self, writers: Writers) -> None:
        """Patch the node once."""
        writers.cluster.uncordon(self.node)
