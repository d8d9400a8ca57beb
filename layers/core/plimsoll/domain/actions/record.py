"""Write down on the node how far its interruption has come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from plimsoll.domain.actions.base import AboutNode, Wave
from plimsoll.domain.actions.writers import Writers
from plimsoll.domain.interruptions import Interruption


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(AboutNode):
    """Replace the record on a node."""

    verb: ClassVar[str] = "record"
    wave: ClassVar[Wave] = Wave.CLOSE

    interruption: Interruption

    def perform(self, writers: Writers) -> None:
        """Patch the annotation only."""
        writers.cluster.record(self.node, self.interruption)
