"""The source of the storm screens for one request: what the interruption stack tells of a tenant's clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from plimsoll_console.sources import ClusterState, Kind, Rehearsal
from plimsoll_service.services.interruption_stack import InterruptionStack


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantStorms:
    """The clusters of one tenant, as a source of screens. Each is read when it is asked for."""

    stack: InterruptionStack | None
    """None: the service is told of no interruption stack."""
    registered: Mapping[str, str]
    """The clusters that are asked for: the name that the person gave -> the one in the registry."""
    time: datetime
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
        """Return the last storm and the reports of a cluster; None: no stack tells of it.

        Raises:
            PlimsollError: a table cannot be read.
        """
        name = self.registered.get(cluster)
        if name is None or self.stack is None:
            return None
        return stack_state(
            ClusterState(name=cluster, at=self.time),
            self.stack.storm(name, self.at, self.time),
            self.stack.newest_reports(name),
            self.time,
        )

    def rehearsals(self, cluster: str) -> Sequence[Rehearsal]:  # noqa: ARG002 - of the port
        """Return none: the service does not rehearse."""
        return []

    def rehearse(self, cluster: str, scope: str) -> Rehearsal | None:  # noqa: ARG002 - of the port
        """Begin none."""
        return None
