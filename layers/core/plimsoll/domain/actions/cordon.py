"""Cordon a node that is going."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from plimsoll.domain.actions.base import AboutNode, Wave
from plimsoll.domain.actions.writers import Writers
from plimsoll.domain.interruptions import Interruption


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordon(AboutNode):
    """Cordon, taint and record, in one patch."""

    verb: ClassVar[str] = "cordon"
    wave: ClassVar[Wave] = Wave.CORDON

    interruption: Interruption

    def perform(self, writers: Writers) -> None:
        """Patch the node once."""
        writers.cluster.cordon(self.node, self.interruption)
