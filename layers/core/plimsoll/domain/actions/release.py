"""Give a node back whose interruption was called off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from plimsoll.domain.actions.base import AboutNode, Wave
from plimsoll.domain.actions.hands import Hands


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(AboutNode):
    """Take cordon, taint and record off a node."""

    verb: ClassVar[str] = "release"
    wave: ClassVar[Wave] = Wave.CORDON

    def perform(self, hands: Hands) -> None:
        """Patch the node once."""
        hands.cluster.release(self.node)
