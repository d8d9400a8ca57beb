"""Free the volumes of a node whose instance is gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from plimsoll.domain.actions.base import Wave
from plimsoll.domain.actions.hands import Hands
from plimsoll.domain.nodes import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfService:
    """Taint a node out of service, so that its volumes detach without the six minutes' wait.

    Only for an instance that EC2 says is gone: two writers on one volume lose data.
    Source: https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/#non-graceful-node-shutdown
    """

    verb: ClassVar[str] = "out-of-service"
    wave: ClassVar[Wave] = Wave.LEAVE

    node: Node
    reason: str

    @property
    def target(self) -> str:
        """The node."""
        return f"Node {self.node.name}"

    def perform(self, hands: Hands) -> None:
        """Add the taint."""
        hands.cluster.out_of_service(self.node)
