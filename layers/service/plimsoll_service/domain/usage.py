"""What pods used, as histograms: small, and the histogram of a day is the sum of those of its hours.

Buckets grow by 5 %, as those of the Vertical Pod Autoscaler do, so that a percentile is at most 5 %
above the true one, and never below it.
https://github.com/kubernetes/autoscaler/blob/master/vertical-pod-autoscaler/pkg/recommender/model/aggregations_config.go
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil, log
from typing import Final, Self

from plimsoll_service.wire.snapshot import Amounts, Snapshot

GROWTH: Final = 1.05
MIB: Final = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """How often amounts were seen, by bucket. Bucket n ends at 1.05**n."""

    counts: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, amounts: Iterable[int]) -> Self:
        """Return the histogram of amounts, each a whole number."""
        return cls(counts=Counter(map(_bucket, amounts)))

    @property
    def samples(self) -> int:
        """How many amounts it holds."""
        return sum(self.counts.values())

    def __add__(self, other: Histogram) -> Histogram:
        return Histogram(counts=Counter(self.counts) + Counter(other.counts))

    def percentile(self, percent: float) -> int:
        """Return an amount that so many percent of the samples do not exceed; 0 without samples."""
        wanted = ceil(self.samples * percent / 100)
        seen = 0
        for bucket, count in sorted(self.counts.items()):
            seen += count
            if seen >= wanted:
                return _end(bucket)
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadUsage:
    """What one pod of a workload used: all pods and times are samples of the same thing."""

    cpu_m: Histogram = field(default_factory=Histogram)
    """Millicores."""
    memory_mib: Histogram = field(default_factory=Histogram)

    def __add__(self, other: WorkloadUsage) -> WorkloadUsage:
        return WorkloadUsage(
            cpu_m=self.cpu_m + other.cpu_m, memory_mib=self.memory_mib + other.memory_mib
        )

    def at(self, cpu: float, memory: float) -> Amounts:
        """Return the percentiles of processors and memory."""
        return Amounts(
            cpu_m=self.cpu_m.percentile(cpu), memory=self.memory_mib.percentile(memory) * MIB
        )


def usage_by_workload(snapshot: Snapshot) -> Mapping[str, WorkloadUsage]:
    """Return what the Ready pods of a full snapshot use, by the uid of their workload.

    A pod that starts or stops tells nothing of what its workload needs.
    """
    used = {each.uid: each for each in snapshot.usage}
    cpu: dict[str, list[int]] = {}
    memory: dict[str, list[int]] = {}
    for pod in snapshot.pods:
        sample = used.get(pod.uid)
        if sample is None or pod.owner is None or not pod.ready or pod.deleting:
            continue
        cpu.setdefault(pod.owner.uid, []).append(sample.cpu_m)
        memory.setdefault(pod.owner.uid, []).append(ceil(sample.memory / MIB))
    return {
        uid: WorkloadUsage(cpu_m=Histogram.of(cpu[uid]), memory_mib=Histogram.of(memory[uid]))
        for uid in cpu
    }


def _bucket(amount: int) -> int:
    bucket = max(0, ceil(log(amount) / log(GROWTH))) if amount > 1 else 0
    return bucket if _end(bucket) >= amount else bucket + 1


def _end(bucket: int) -> int:
    return ceil(GROWTH**bucket) if bucket else 1
