"""The source of the storm screens for one request: what an interruption stack tells of a tenant's cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from plimsoll_console.sources import ClusterState, Kind, Rehearsal, with_end
from plimsoll_service.services.interruption_stack import InterruptionStack


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantStorms:
    """What is told of the clusters that a request names. Each is read when it is asked for."""

    time: datetime
    stack: InterruptionStack | None = None
    """None: the service is told of no interruption stack."""
    registered: Mapping[str, str]
    """The name in the request -> the one in the registry."""
    at: float | None = None
    """Seconds after the first notice of the frame that is replayed."""
    title: str = ""
    kind: Kind = "stack"
    speed: float = 1.0
    ended: bool = False

    def now(self) -> datetime:
        """Return the time."""
        return self.time

    def clusters(self) -> Sequence[str]:
        """Return the names of the clusters."""
        return sorted(self.registered)

    def state(self, cluster: str) -> ClusterState | None:
        """Return the last storm and the newest reports of a cluster; None: no stack tells of it.

        Raises:
            PlimsollError: a table cannot be read.
        """
        name = self.registered.get(cluster)
        if name is None or self.stack is None:
            return None
        frames = self.stack.storm(name, self.at, self.time)
        reports = self.stack.newest_reports(name)
        return ClusterState(
            name=cluster,
            at=self.time,
            frames=with_end(frames, reports, self.time),
            reports=reports,
            told=True,
        )

    def rehearsals(self, cluster: str) -> Sequence[Rehearsal]:  # noqa: ARG002 - of the port
        """Return none: the service does not rehearse."""
        return []

    def rehearse(self, cluster: str, scope: str) -> Rehearsal | None:  # noqa: ARG002 - of the port
        """Begin none."""
        return None
