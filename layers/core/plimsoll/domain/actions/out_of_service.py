"""Free the volumes of a node whose instance is gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from plimsoll.domain.actions.base import AboutNode, Wave
from plimsoll.domain.actions.writers import Writers


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfService(AboutNode):
    """Taint a node out of service, so that its volumes detach without the six minutes' wait.

    Only for an instance that EC2 says is gone: two writers on one volume lose data.
    Source: https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/#non-graceful-node-shutdown
    """

    verb: ClassVar[str] = "out-of-service"
    wave: ClassVar[Wave] = Wave.LEAVE

    def perform(self, writers: Writers) -> None:
        """Add the taint."""
        writers.cluster.out_of_service(self.node)
