"""The in-memory stores and the queue of wake-ups, behind the wire: as slow as DynamoDB and SQS."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from plimsoll.domain.clusters import Cluster, IndexEntry
from plimsoll.domain.reports import Report
from plimsoll_testbed.model.stores import MemoryNodeIndex, MemoryRegistry, MemoryReports
from plimsoll_testbed.rigs.simulated.network import SimulatedNetwork


class SimulatedRegistry:
    """The port `Registry`; nobody registers clusters during a drill."""

    def __init__(self, wire: SimulatedNetwork, clusters: Sequence[Cluster]) -> None:
        self._wire = wire
        self._stored = MemoryRegistry(clusters)

    def get(self, name: str) -> Cluster | None:
        """Return a cluster, or None when nobody registered it."""
        return self._wire.to_aws("dynamodb:GetItem", partial(self._stored.get, name))

    def list(self) -> Sequence[Cluster]:
        """Return all clusters, by name."""
        return self._wire.to_aws("dynamodb:Scan", self._stored.list)

    def add(self, cluster: Cluster) -> None:
        """Add a cluster."""
        self._wire.to_aws("dynamodb:PutItem", partial(self._stored.add, cluster))

    def update(self, cluster: Cluster) -> None:
        """Replace what is known of a cluster."""
        self._wire.to_aws("dynamodb:PutItem", partial(self._stored.update, cluster))

    def remove(self, name: str) -> None:
        """Remove a cluster."""
        self._wire.to_aws("dynamodb:DeleteItem", partial(self._stored.remove, name))


class SimulatedNodeIndex:
    """The port `NodeIndex`."""

    def __init__(self, wire: SimulatedNetwork) -> None:
        self._wire = wire
        self._stored = MemoryNodeIndex()

    def find(self, instances: Sequence[str]) -> Mapping[str, IndexEntry]:
        """Return the entries that exist."""
        return self._wire.to_aws("dynamodb:BatchGetItem", partial(self._stored.find, instances))

    def put(self, entries: Sequence[IndexEntry]) -> None:
        """Write entries; the newest `seen` wins."""
        self._wire.to_aws("dynamodb:BatchWriteItem", partial(self._stored.put, entries))


class SimulatedReports:
    """The port `Reports`."""

    def __init__(self, wire: SimulatedNetwork) -> None:
        self._wire = wire
        self.stored = MemoryReports()
        """Read by the rig when all is over, at no cost."""

    def merge(self, report: Report) -> Report:
        """Merge into what is stored under the same interruption, and return the result."""
        return self._wire.to_aws("dynamodb:PutItem", partial(self.stored.merge, report))

    def list(self, cluster: str, limit: int = 50) -> Sequence[Report]:
        """Return the newest reports of a cluster, newest first."""
        return self._wire.to_aws("dynamodb:Query", partial(self.stored.list, cluster, limit))


class SimulatedWakeUps:
    """The port `Wake-ups`: what is sent goes to whoever plays the queue."""

    def __init__(self, wire: SimulatedNetwork, queue: Callable[[str, int], None]) -> None:
        self._wire = wire
        self._queue = queue

    def send(self, cluster: str, delays: Sequence[int]) -> None:
        """Send one wake-up for each delay, in seconds; ten go in one call."""
        for first in range(0, len(delays), 10):
            batch = delays[first : first + 10]
            self._wire.to_aws("sqs:SendMessageBatch", partial(self._take, cluster, batch))

    def _take(self, cluster: str, delays: Sequence[int]) -> None:
        for delay in delays:
            self._queue(cluster, delay)
