"""Opens registered clusters for the planner of their queues. Each stays open for the life of the process."""

from __future__ import annotations

from collections.abc import Callable

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.clusters import OpenClusters
from plimsoll.domain.registry import Cluster
from plimsoll.services.ports import Clock, Workers
from plimsoll_batch.adapters.kubernetes.cluster import KubernetesQueues


class OpenQueues:
    """Implements `plimsoll_batch.services.ports.QueueClusters`."""

    def __init__(
        self, aws: Aws, clock: Clock, workers: Workers, *, warn: Callable[[str], None]
    ) -> None:
        self._clusters = OpenClusters(aws, clock, workers, warn=warn)
        self._clock, self._workers, self._warn = clock, workers, warn
        self._open: dict[Cluster, KubernetesQueues] = {}

    def open(self, cluster: Cluster) -> KubernetesQueues:
        """Return the API of a cluster; connects on first use."""
        if cluster not in self._open:
            self._open[cluster] = KubernetesQueues.of(
                self._clusters.transport(cluster),
                cluster.name,
                self._clock,
                self._workers,
                warn=self._warn,
            )
        return self._open[cluster]
