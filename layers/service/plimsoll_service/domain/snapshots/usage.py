"""What pods used, as histograms: small, and the histogram of a day is the sum of those of its hours.

Buckets grow by 5 %, as those of the Vertical Pod Autoscaler do, so that a percentile is at most 5 %
above the true one, and never below it.
https://github.com/kubernetes/autoscaler/blob/master/vertical-pod-autoscaler/pkg/recommender/model/aggregations_config.go
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil, log
from typing import Final, Self

from plimsoll_service.wire.snapshot import MOST_CONTAINERS, Amounts, Snapshot

GROWTH: Final = 1.05
MIB: Final = 2**20
MOST_NAMES: Final = 2 * MOST_CONTAINERS
"""Of the containers of one workload: its owner may rename them as often as he likes."""
OOM_KILLED: Final = "OOMKilled"
UNTOLD: Final = frozenset({"", "ContainerStatusUnknown"})
"""Reasons that do not say why a container ended: it may have been OOM-killed."""


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
class Samples:
    """What was used: all pods and times are samples of the same thing."""

    cpu_m: Histogram = field(default_factory=Histogram)
    """Millicores."""
    memory_mib: Histogram = field(default_factory=Histogram)

    def at(self, cpu: float, memory: float) -> Amounts:
        """Return the percentiles of processors and memory."""
        return Amounts(
            cpu_m=self.cpu_m.percentile(cpu), memory=self.memory_mib.percentile(memory) * MIB
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerUsage(Samples):
    """What one container of a pod template used."""

    killed: datetime | None = None
    """When one was last OOM-killed, or ended for a reason that nobody knows."""

    def __add__(self, other: ContainerUsage) -> ContainerUsage:
        return ContainerUsage(
            cpu_m=self.cpu_m + other.cpu_m,
            memory_mib=self.memory_mib + other.memory_mib,
            killed=max(filter(None, (self.killed, other.killed)), default=None),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadUsage(Samples):
    """What one pod of a workload used, and its containers."""

    containers: Mapping[str, ContainerUsage] = field(default_factory=dict)
    """By name. Those of the template only: containers that admission adds are not its owner's to size."""

    def __add__(self, other: WorkloadUsage) -> WorkloadUsage:
        nothing = ContainerUsage()
        containers = {
            name: self.containers.get(name, nothing) + other.containers.get(name, nothing)
            for name in {**self.containers, **other.containers}
        }
        return WorkloadUsage(
            cpu_m=self.cpu_m + other.cpu_m,
            memory_mib=self.memory_mib + other.memory_mib,
            containers=_most_telling(containers),
        )


def usage_by_workload(snapshot: Snapshot) -> Mapping[str, WorkloadUsage]:
    """Return what the pods of a full snapshot use, by the uid of their workload.

    A pod that starts or stops tells nothing of what its workload needs, but for how its containers ended.
    """
    used = {each.uid: each for each in snapshot.usage}
    templates = {w.uid: frozenset(c.name for c in w.template) for w in snapshot.workloads}
    whole: dict[str, _Seen] = defaultdict(_Seen)
    parts: dict[str, dict[str, _Seen]] = defaultdict(lambda: defaultdict(_Seen))
    for pod in snapshot.pods:
        if pod.owner is None:
            continue
        uid = pod.owner.uid
        template = templates.get(uid, frozenset())
        for ended in pod.restarted:
            if ended.name in template and ended.reason in {OOM_KILLED, *UNTOLD}:
                parts[uid][ended.name].kill(min(ended.at or snapshot.taken_at, snapshot.taken_at))
        sample = used.get(pod.uid)
        if sample is None or not pod.ready or pod.deleting:
            continue
        whole[uid].add(sample.cpu_m, sample.memory)
        for each in sample.containers:
            if each.name in template:
                parts[uid][each.name].add(each.cpu_m, each.memory)
    return {
        uid: WorkloadUsage(
            cpu_m=Histogram.of(whole[uid].cpu_m),
            memory_mib=Histogram.of(whole[uid].memory_mib),
            containers={
                name: ContainerUsage(
                    cpu_m=Histogram.of(part.cpu_m),
                    memory_mib=Histogram.of(part.memory_mib),
                    killed=part.killed,
                )
                for name, part in parts[uid].items()
            },
        )
        for uid in {**whole, **parts}
    }


@dataclass(slots=True)
class _Seen:
    """What one snapshot tells of one thing."""

    cpu_m: list[int] = field(default_factory=list)
    memory_mib: list[int] = field(default_factory=list)
    killed: datetime | None = None

    def add(self, cpu_m: int, memory: int) -> None:
        self.cpu_m.append(cpu_m)
        self.memory_mib.append(ceil(memory / MIB))

    def kill(self, at: datetime) -> None:
        self.killed = max(self.killed or at, at)


def sum_of(amounts: Iterable[Amounts]) -> Amounts:
    """Return the sum of amounts."""
    found = list(amounts)
    return Amounts(
        cpu_m=sum(each.cpu_m for each in found),
        memory=sum(each.memory for each in found),
        pods=sum(each.pods for each in found),
    )


def _most_telling(containers: dict[str, ContainerUsage]) -> Mapping[str, ContainerUsage]:
    """Return as many containers as are kept: first those that were killed, then by their samples."""
    if len(containers) <= MOST_NAMES:
        return containers
    order = sorted(
        containers.items(),
        key=lambda item: (item[1].killed is None, -item[1].cpu_m.samples, item[0]),
    )
    return dict(order[:MOST_NAMES])


def _bucket(amount: int) -> int:
    bucket = max(0, ceil(log(amount) / log(GROWTH))) if amount > 1 else 0
    return bucket if _end(bucket) >= amount else bucket + 1


def _end(bucket: int) -> int:
    return ceil(GROWTH**bucket) if bucket else 1
