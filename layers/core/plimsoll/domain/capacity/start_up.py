"""Workloads on GPUs whose pods start more slowly than a spot notice leaves time for.

Their replacements are not Ready before the deadline, whatever capacity there is. Only pods that stand on on-demand
nodes serve meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from plimsoll.domain.kubernetes import GPU as WHOLE_GPU
from plimsoll.domain.kubernetes import INSTANCE_TYPE, MIG_SLICES, Pod, Ref
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
        return f'annotate it with plimsoll.dev/min-on-demand: "{self.lost}"'


def slow_starts(seen: Observation, now: datetime) -> Iterator[SlowStart]:
    """Yield the workloads on GPUs that start slowly and have fewer pods on on-demand than on one spot pool."""
    for workload, samples in start_samples(seen.of_workload).items():
        start = samples.times(now).start
        if start is None or start.p95_seconds <= NOTICE_SECONDS:
            continue
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
