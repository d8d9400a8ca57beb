"""What a schedule runs for all registered clusters, side by side: one that fails hides no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from plimsoll.domain.clusters import Cluster
from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.metrics import Metric
from plimsoll.services.ports import Registry, Telemetry, Workers

LABELLED: Final = 50
"""How many clusters, the first by name, have metrics of their own: each costs as much as one."""
OTHERS: Final = "others"


@dataclass(frozen=True, slots=True, kw_only=True)
class EachCluster:
    """Runs something for every registered cluster once."""

    registry: Registry
    workers: Workers
    telemetry: Telemetry

    def run(self, act: Callable[[Cluster, str], int], words: str) -> int:
        """Return the sum of what `act` returned; clusters for which it failed are counted.

        Args:
            act: takes a cluster, and the name that it has in metrics.
            words: logged for a cluster for which it failed.

        Raises:
            Exception: whatever `act` is not meant to raise.
        """
        clusters = self.registry.list()
        labels = [c.name if n < LABELLED else OTHERS for n, c in enumerate(clusters)]
        pairs = list(zip(clusters, labels, strict=True))
        answers = self.workers.run([partial(act, cluster, label) for cluster, label in pairs])
        total = failed = 0
        for (cluster, label), answer in zip(pairs, answers, strict=True):
            match answer:
                case int():
                    total += answer
                case PlimsollError():
                    failed += 1
                    self.telemetry.count(Metric.CLUSTERS_NOT_RESYNCED, cluster=label)
                    self.telemetry.warn(words, cluster=cluster.name, because=str(answer))
                case Exception():
                    raise answer
        self.telemetry.count(Metric.CLUSTERS_NOT_RESYNCED, failed)
        return total
