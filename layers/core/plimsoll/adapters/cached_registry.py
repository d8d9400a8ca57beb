"""A registry that answers from memory while its table cannot be read.

A drain must not stop because a database does. What is remembered may be old: a cluster that was set
to observe during the outage is still written to by a process that saw it in act mode. The kill
switch is not a matter of the table, and stops even that.
"""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll.domain.errors import Temporary
from plimsoll.domain.registry import Cluster
from plimsoll.services.ports import RegisteredClusters, Telemetry


class CachedRegistry:
    """Reads through to another registry, and keeps what it said for the life of the process."""

    def __init__(self, registry: RegisteredClusters, telemetry: Telemetry) -> None:
        self._registry = registry
        self._telemetry = telemetry
        self._known: dict[str, Cluster] = {}

    def get(self, name: str) -> Cluster | None:
        """Return a cluster, or None when nobody registered it.

        Raises:
            Temporary: the table cannot be read, and this process never saw the cluster.
        """
        try:
            found = self._registry.get(name)
        except Temporary as error:
            if name not in self._known:
                raise
            self._telemetry.warn("registry not read: from memory", cluster=name, because=str(error))
            return self._known[name]
        self._remember(name, found)
        return found

    def list(self) -> Sequence[Cluster]:
        """Return all clusters, by name."""
        try:
            found = self._registry.list()
        except Temporary as error:
            if not self._known:
                raise
            self._telemetry.warn("registry not read: from memory", because=str(error))
            return [self._known[name] for name in sorted(self._known)]
        # Replaced, not merged: a cluster that is not in the list was removed.
        self._known = {cluster.name: cluster for cluster in found}
        return found

    def _remember(self, name: str, found: Cluster | None) -> None:
        # A removed cluster is forgotten: an outage later must not bring it back.
        if found is None:
            self._known.pop(name, None)
        else:
            self._known[name] = found
