"""One program beside the responder: it looks at the cluster once in its period, and acts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from plimsoll.adapters.kubernetes.transport import Response
from plimsoll_simulation.fake_cluster.resources import BY_KIND
from plimsoll_simulation.rigs.rig_cluster import MERGE, RigCluster
from plimsoll_simulation.rigs.simulated.time import VirtualClock

type Json = dict[str, Any]


@dataclass(slots=True)
class OtherController[C: RigCluster = RigCluster](ABC):
    """One program in one cluster. A look while the API server is away ends at its first request."""

    rig_cluster: C
    clock: VirtualClock
    name: str
    """Also its user agent."""

    def act(self) -> None:
        """Look once, and do what is to be done."""
        with suppress(ConnectionRefusedError):
            self.look()

    @property
    def under_way(self) -> bool:
        """Whether it is about to act, or in the midst of it: then the drill is not settled."""
        return False

    @abstractmethod
    def look(self) -> None:
        """Look once.

        Raises:
            ConnectionRefusedError: the API server is away.
        """

    def send(self, method: str, path: str, body: Json | None = None) -> Response:
        """Send a request to the API server.

        Raises:
            ConnectionRefusedError: it is away.
        """
        kind = "application/json" if method == "POST" else MERGE
        return self.rig_cluster.call(method, path, body, kind, user=self.name)

    def live(self, obj: Json) -> Json | None:
        """Return an object as it stands in the cluster."""
        metadata = obj["metadata"]
        plural = BY_KIND[obj["kind"]].plural
        return self.rig_cluster.get(plural, metadata.get("namespace", "default"), metadata["name"])
