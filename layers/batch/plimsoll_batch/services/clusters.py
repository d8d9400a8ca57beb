"""The queues of all registered clusters: each is woken by a message of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from plimsoll.domain.registry import Cluster, Mode
from plimsoll.services.ports import Registry, RepeatingClock, Telemetry, WakeUps, Workers
from plimsoll_batch.services.ports import QueueClusters
from plimsoll_batch.services.queues import QueueService
from plimsoll_batch.services.scale_up import ScaleUp


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterQueues:
    """Plans the queues of registered clusters that may be written to."""

    registry: Registry
    clusters: QueueClusters
    wake_ups: WakeUps
    clock: RepeatingClock
    workers: Workers
    telemetry: Telemetry
    pods_per_second: int
    growing: Callable[[Cluster], ScaleUp] | None = None
    """Returns what asks the node groups of a cluster, the same object every time; None: none is asked."""

    def wake(self) -> None:
        """Send each cluster that may be written to one wake-up.

        Raises:
            Temporary: some were not taken; the next schedule sends them again.
        """
        for cluster in self.registry.list():
            if cluster.mode is Mode.ACT:
                self.wake_ups.send(cluster.name, [0])

    def run(self, name: str, *, holder: str, seconds: float) -> int:
        """Plan the queues of a cluster for so long, and say how many cycles that took.

        Raises:
            PlimsollError: the cluster does not answer, or refuses what is needed.
        """
        cluster = self.registry.get(name)
        if cluster is None or cluster.mode is not Mode.ACT:
            self.telemetry.log("queues left alone", cluster=name)
            return 0
        return self._service(cluster).run(holder=holder, seconds=seconds)

    def _service(self, cluster: Cluster) -> QueueService:
        return QueueService(
            name=cluster.name,
            cluster=self.clusters.open(cluster),
            clock=self.clock,
            workers=self.workers,
            telemetry=self.telemetry,
            policy=cluster.policy,
            pods_per_second=self.pods_per_second,
            growing=None if self.growing is None else self.growing(cluster),
        )
