"""What pods used, as histograms: small, and the histogram of a day is the sum of those of its hours.

Buckets grow by 5 %, as those of the Vertical Pod Autoscaler do, so that a percentile is at most 5 %
above the true one, and never below it.
https://github.com/kubernetes/autoscaler/blob/master/vertical-pod-autoscaler/pkg/recommender/model/aggregations_config.go
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import batched, chain
from math import ceil
from typing import Final, Self

import msgspec

from plimsoll_service.wire.documents import MOST_COUNT
from plimsoll_service.wire.snapshot import MOST_CONTAINERS, Amounts, Pod, Snapshot, Usage, Workload

GROWTH: Final = 1.05
MIB: Final = 2**20
MOST_NAMES: Final = 2 * MOST_CONTAINERS
"""Of the containers of one workload: its owner may rename them as often as he likes."""
WORKLOAD_WEIGHT: Final = 6
"""What a workload costs beside its counts, of which each costs 1: time and memory go with the sum."""
CONTAINER_WEIGHT: Final = 4
"""What one of its containers costs beside its counts."""
MOST_OF_MINUTE: Final = 32_000
"""Weight of the usage of a minute: 1,600 workloads of two containers and one pod, or fewer with more."""
MOST_OF_HOUR: Final = 100_000
"""Of the usage of a longer span, whose histograms have more buckets."""
BUCKETS: Final = 1000
"""Places of one histogram in packed counts: more than there are buckets."""
_ENDS: Final = tuple(ceil(GROWTH**bucket) for bucket in range(760))
"""Where buckets end: beyond 2**53, which no amount exceeds."""
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
        return cls(counts=Counter(map(partial(bisect_left, _ENDS), amounts)))

    @property
    def samples(self) -> int:
        """How many amounts it holds."""
        return sum(self.counts.values())

    def percentile(self, percent: float) -> int:
        """Return an amount that so many percent of the samples do not exceed; 0 without samples."""
        wanted = ceil(self.samples * percent / 100)
        seen = 0
        for bucket, count in sorted(self.counts.items()):
            seen += count
            if seen >= wanted:
                return _ENDS[bucket]
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """What was used: all pods and times are samples of the same thing."""

    cpu_m: Histogram = field(default_factory=Histogram)
    """Millicores."""
    memory_mib: Histogram = field(default_factory=Histogram)

    @property
    def histograms(self) -> tuple[Histogram, Histogram]:
        """Of processors, and of memory."""
        return self.cpu_m, self.memory_mib

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


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadUsage(Samples):
    """What one pod of a workload used, and its containers."""

    containers: Mapping[str, ContainerUsage] = field(default_factory=dict)
    """By name. Those of the template only: containers that admission adds are not its owner's to size."""


class Packed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A `WorkloadUsage` as documents hold it: numbers in place of an object for each histogram.

    Tens of thousands of them are added up at once, and objects would cost most of the time.
    """

    names: tuple[str, ...] = ()
    """Of containers."""
    counts: tuple[int, ...] = ()
    """Places, each with its count behind it: of whole pods, then of the containers by their names, each with its
    processors and then its memory."""
    killed: Mapping[str, datetime] = msgspec.field(default_factory=dict)
    """By name."""

    @classmethod
    def of(cls, usage: WorkloadUsage) -> Self:
        """Pack usage."""
        histograms = (h for its in (usage, *usage.containers.values()) for h in its.histograms)
        return cls(
            names=tuple(usage.containers),
            counts=tuple(
                each
                for number, histogram in enumerate(histograms)
                for bucket, count in histogram.counts.items()
                for each in (number * BUCKETS + bucket, count)
            ),
            killed={n: its.killed for n, its in usage.containers.items() if its.killed is not None},
        )

    def places(self) -> Iterator[tuple[int, int]]:
        """Yield the counts by their places."""
        each = iter(self.counts)
        return zip(each, each, strict=True)

    def unpacked(self) -> WorkloadUsage:
        """Return the usage."""
        counts: list[dict[int, int]] = [{} for _ in range(2 + 2 * len(self.names))]
        for place, count in self.places():
            number, bucket = divmod(place, BUCKETS)
            counts[number][bucket] = count
        cpu_m, memory_mib, *others = (Histogram(counts=each) for each in counts)
        return WorkloadUsage(
            cpu_m=cpu_m,
            memory_mib=memory_mib,
            containers={
                name: ContainerUsage(cpu_m=cpu, memory_mib=memory, killed=self.killed.get(name))
                for name, (cpu, memory) in zip(
                    self.names, batched(others, 2, strict=True), strict=True
                )
            },
        )


class UsageSum:
    """The usage of workloads, added up part by part, and no more of it than a function can work off.

    Of too many workloads the last ones are left out whole: what is left of a histogram would mislead. So parts
    begin with the workloads that ask for most.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._weight = 0
        self._found: dict[str, _Sum] = {}
        self.left_out = 0
        """Workloads that were left out at once."""

    def add(self, usage: Mapping[str, Packed | WorkloadUsage], *, left_out: int = 0) -> None:
        """Add a part, in which so many were left out already."""
        for uid, its in usage.items():
            part = its if isinstance(its, Packed) else Packed.of(its)
            known = self._found.get(uid)
            if known is None:
                known = self._found[uid] = _Sum()
                self._weight += WORKLOAD_WEIGHT
            for name, at in part.killed.items():
                known.killed[name] = max(at, known.killed.get(name, at))
            before = len(known.counts)
            if part.names == known.names:  # inline: thousands of workloads, sixty times
                counts = known.counts
                for place, count in part.places():
                    counts[place] = counts.get(place, 0) + count
            else:
                names = len(known.names)
                known.add_others(part)
                self._weight += CONTAINER_WEIGHT * (len(known.names) - names)
            self._weight += len(known.counts) - before
        while self._weight > self._most:
            _, dropped = self._found.popitem()
            self._weight -= dropped.weight
            left_out += 1
        self.left_out = max(self.left_out, left_out)

    @property
    def usage(self) -> Mapping[str, Packed]:
        """What is kept, by the uid of the workload."""
        return {
            uid: Packed(
                names=its.names,
                counts=tuple(chain.from_iterable(its.counts.items())),
                killed=its.killed,
            )
            for uid, its in self._found.items()
        }


def unpacked(usage: Mapping[str, Packed | WorkloadUsage]) -> Mapping[str, WorkloadUsage]:
    """Return the usage of workloads, as analysis reads it."""
    return {uid: its.unpacked() if isinstance(its, Packed) else its for uid, its in usage.items()}


def usage_by_workload(snapshot: Snapshot, *, most: int = MOST_OF_MINUTE) -> UsageSum:
    """Return what the pods of a full snapshot use, by the uid of their workload.

    A pod that starts or stops tells nothing of what its workload needs, but for how its containers ended.
    """
    pods: dict[str, list[Pod]] = defaultdict(list)
    for pod in snapshot.pods:
        if pod.owner is not None:
            pods[pod.owner.uid].append(pod)
    used = {each.uid: each for each in snapshot.usage}
    workloads = {each.uid: each for each in snapshot.workloads}
    asked = {uid: asked_by(workloads[uid]) if uid in workloads else -1 for uid in pods}
    found, order = UsageSum(most), sorted(pods, key=lambda uid: (-asked[uid], uid))
    for number, uid in enumerate(order):
        template = workloads[uid].template if uid in workloads else ()
        its = _usage_of(pods[uid], used, frozenset(c.name for c in template), snapshot.taken_at)
        if its is not None:
            found.add({uid: its})
        if found.left_out:
            found.left_out = len(order) - number
            break
    return found


def _usage_of(
    pods: Iterable[Pod], used: Mapping[str, Usage], template: frozenset[str], taken: datetime
) -> WorkloadUsage | None:
    """Return what the pods of one workload tell; None: nothing."""
    whole, parts = _Seen(), dict[str, _Seen]()
    for pod in pods:
        for ended in pod.restarted:
            if ended.name in template and ended.reason in {OOM_KILLED, *UNTOLD}:
                parts.setdefault(ended.name, _Seen()).kill(min(ended.at or taken, taken))
        sample = used.get(pod.uid)
        if sample is None or not pod.ready or pod.deleting:
            continue
        whole.add(sample.cpu_m, sample.memory)
        for each in sample.containers:
            if each.name in template:
                parts.setdefault(each.name, _Seen()).add(each.cpu_m, each.memory)
    if not whole.cpu_m and not parts:
        return None
    return WorkloadUsage(
        cpu_m=Histogram.of(whole.cpu_m),
        memory_mib=Histogram.of(whole.memory_mib),
        containers={
            name: ContainerUsage(
                cpu_m=Histogram.of(part.cpu_m),
                memory_mib=Histogram.of(part.memory_mib),
                killed=part.killed,
            )
            for name, part in parts.items()
        },
    )


@dataclass(slots=True)
class _Seen:
    """What one snapshot tells of one thing."""

    cpu_m: list[int] = field(default_factory=list)
    memory_mib: list[int] = field(default_factory=list)
    killed: datetime | None = None

    def add(self, cpu_m: int, memory: int) -> None:
        self.cpu_m.append(cpu_m)
        self.memory_mib.append(-(-memory // MIB))

    def kill(self, at: datetime) -> None:
        self.killed = max(self.killed or at, at)


@dataclass(slots=True)
class _Sum:
    """What is added up of a workload."""

    names: tuple[str, ...] = ()
    counts: dict[int, int] = field(default_factory=dict)
    killed: dict[str, datetime] = field(default_factory=dict)

    @property
    def weight(self) -> int:
        """What it costs."""
        return WORKLOAD_WEIGHT + CONTAINER_WEIGHT * len(self.names) + len(self.counts)

    def add_others(self, part: Packed) -> None:
        """Add the counts of a part whose containers are others."""
        self.names = tuple(dict.fromkeys((*self.names, *part.names)))
        self._count(part.names, part.places())
        if len(self.names) > MOST_NAMES:
            self._forget()

    def _count(self, names: Sequence[str], places: Iterable[tuple[int, int]]) -> None:
        """Add the counts of containers in another order; those that have no name here are left out."""
        here = {name: number for number, name in enumerate(self.names, 1)}
        numbers = (0, *(here.get(name) for name in names))
        for place, count in places:
            number, rest = divmod(place, 2 * BUCKETS)
            if (to := numbers[number]) is not None:
                at = to * 2 * BUCKETS + rest
                self.counts[at] = self.counts.get(at, 0) + count

    def _forget(self) -> None:
        """Keep as many containers as are kept: first those that were killed, then by their samples."""
        samples: Counter[str] = Counter()
        for place, count in self.counts.items():
            number, rest = divmod(place, 2 * BUCKETS)
            if number and rest < BUCKETS:
                samples[self.names[number - 1]] += count
        order = sorted(self.names, key=lambda name: (name not in self.killed, -samples[name], name))
        names, counts = self.names, self.counts
        self.names, self.counts = tuple(order[:MOST_NAMES]), {}
        self._count(names, counts.items())
        self.killed = {name: at for name, at in self.killed.items() if name in self.names}


def asked_by(workload: Workload) -> int:
    """Return how much a workload asks for: a processor counts as 4 GiB do."""
    one = workload.requests
    return (one.cpu_m + one.memory // (4 * MIB)) * workload.replicas


def sum_of(amounts: Iterable[Amounts]) -> Amounts:
    """Return the sum of amounts, or the most that a document holds: agents may tell anything."""
    found = list(amounts)
    return Amounts(
        cpu_m=min(sum(each.cpu_m for each in found), MOST_COUNT),
        memory=min(sum(each.memory for each in found), MOST_COUNT),
        pods=min(sum(each.pods for each in found), MOST_COUNT),
    )
