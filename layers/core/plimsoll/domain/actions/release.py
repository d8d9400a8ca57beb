"""Give a node back whose interruption was called off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from plimsoll.domain.actions.base import Wave
from plimsoll.domain.actions.hands import Hands
from plimsoll.domain.nodes import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Take cordon, taint and record off a node."""

    verb: ClassVar[str] = "release"
    wave: ClassVar[Wave] = Wave.CORDON

    node: Node
    reason: str

    @property
    def target(self) -> str:
        """The node."""
        return f"Node {self.node.name}"

    def perform(self, hands: Hands) -> None:
        """Patch the node once."""
        hands.cluster.release(self.node)
