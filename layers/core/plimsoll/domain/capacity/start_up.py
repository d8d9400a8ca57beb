"""Workloads whose pods start more slowly than a spot notice leaves time for; most load a model onto GPUs.

Their replacements are not Ready before the deadline, whatever capacity there is. Only pods that stand on on-demand
nodes serve meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from plimsoll.domain.kubernetes import AUTO_FLOOR, INSTANCE_TYPE, MIG_SLICES, Pod, Ref
from plimsoll.domain.kubernetes import GPU as WHOLE_GPU
from plimsoll.domain.observation import Observation, ObservedTime, start_samples
from plimsoll.domain.spot import CapacityPool

NOTICE_SECONDS: Final = 120
"""https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowStart:
    """A workload that the loss of one spot pool leaves with too few pods for as long as others start."""

    workload: Ref
    replicas: int
    start: ObservedTime
    pool: CapacityPool
    """The spot pool that runs most of its pods."""
    lost: int
    """How many it runs."""
    on_demand: int
    """How many pods stand on on-demand nodes."""

    @property
    def says(self) -> str:
        """What would happen, in words."""
        return (
            f"{self.workload} takes {self.start.p95_seconds:.0f} s to start, longer than a spot notice: without "
            f"{self.pool} {self.lost} of its {self.replicas} pods would be missing for that long, and "
            f"{self.on_demand} stand on on-demand"
        )

    @property
    def cure(self) -> str:
        """What its owner can do about it."""
        return (
            f'annotate it with plimsoll.dev/min-on-demand: "{self.lost}", '
            f'or "{AUTO_FLOOR}" for an even share'
        )


def slow_to_start(seen: Observation, now: datetime) -> Mapping[Ref, ObservedTime]:
    """Return how long running pods took to start, of the workloads where that is longer than a spot notice."""
    starts = {
        workload: samples.times(now).start
        for workload, samples in start_samples(seen.of_workload).items()
    }
    return {
        workload: start
        for workload, start in starts.items()
        if start is not None and start.p95_seconds > NOTICE_SECONDS
    }


def slow_starts(seen: Observation, slow: Mapping[Ref, ObservedTime]) -> Iterator[SlowStart]:
    """Yield the workloads on GPUs that start slowly and have fewer pods on on-demand than on one spot pool.

    Args:
        seen: one observation of the cluster.
        slow: what `slow_to_start` says of it.
    """
    for workload, start in slow.items():
        pods = [pod for pod in seen.of_workload[workload] if pod.serving and _on_gpus(pod)]
        nodes = [node for pod in pods if (node := seen.node.get(pod.node or "")) is not None]
        pools = Counter(
            CapacityPool(node.labels.get(INSTANCE_TYPE, "?"), node.zone or "?", "spot")
            for node in nodes
            if node.capacity == "spot"
        )
        on_demand = sum(node.capacity == "on-demand" for node in nodes)
        for pool, lost in pools.most_common(1):
            if on_demand < lost:
                yield SlowStart(
                    workload=workload,
                    replicas=len(pods),
                    start=start,
                    pool=pool,
                    lost=lost,
                    on_demand=on_demand,
                )


def _on_gpus(pod: Pod) -> bool:
    names = (name for name, _ in pod.scheduling.requests.extended)
    return any(name == WHOLE_GPU or name.startswith(MIG_SLICES) for name in names)
