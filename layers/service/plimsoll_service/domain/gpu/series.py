"""Classes of workload over days: the documents of single days put end to end, on one axis of time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from plimsoll.domain.kubernetes import MIG_SLICES
from plimsoll_service.wire.gpu import (
    MINUTES_PER_DAY,
    UNSEEN,
    WINDOWS_PER_DAY,
    ClassDay,
    GpuClass,
    PodDay,
)

DUTY_METRICS: Final = ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL")
"""One of them tells whether a GPU works."""
MINUTES_PER_WINDOW: Final = MINUTES_PER_DAY // WINDOWS_PER_DAY
_WINDOW_BITS: Final = (1 << MINUTES_PER_WINDOW) - 1

type Windows = Mapping[int, int]
"""Maxima by the number of the window since midnight of the first day; what was not measured is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSeries:
    """A pod of a class, over all days."""

    pod: str
    gpus: int
    memory_mib: Windows
    duty: Windows
    dram: Windows
    seen: int
    """A bit for each minute since midnight of the first day in which it held its GPUs."""
    known: int
    """Those of `seen` in which something told whether they worked."""
    busy: int

    def peak(self, begin: int, end: int) -> int | None:
        """Return the largest memory in windows from `begin` to before `end`, in MiB."""
        found = (mib for at, mib in self.memory_mib.items() if begin <= at < end)
        return max(found, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSeries:
    """A class of workload, over all days."""

    of: GpuClass
    pods: Sequence[PodSeries]
    last: ClassDay
    """Its latest document: resource, sharing and missing metrics are as it tells."""
    left_out: int
    """Pods of a day, at most, that were not kept one by one."""

    @property
    def profile(self) -> str:
        """The MIG profile that its pods ask for; empty: whole GPUs, or replicas of them."""
        found = self.last.resource
        return found.removeprefix(MIG_SLICES) if found.startswith(MIG_SLICES) else ""

    @property
    def gpus(self) -> int:
        """How many GPUs, slices or replicas a pod of it holds."""
        return max((each.gpus for each in self.pods), default=1)

    def peaks(self, begin: int, end: int) -> Mapping[str, int]:
        """Return the largest memory of each pod that was measured from `begin` to before `end`."""
        found = {each.pod: each.peak(begin, end) for each in self.pods}
        return {pod: mib for pod, mib in found.items() if mib is not None}

    def at_once(self) -> int:
        """Return how many of its pods ran at most at one time."""
        counts: dict[int, int] = defaultdict(int)
        for each in self.pods:
            for window in each.memory_mib.keys() | each.duty.keys():
                counts[window] += 1
        return max(counts.values(), default=len(self.pods)) + self.left_out


def first_day(days: Iterable[ClassDay]) -> date | None:
    """Return the day from whose midnight minutes and windows are counted; None: there are no days."""
    return min((each.day for each in days), default=None)


def series_of(days: Iterable[ClassDay]) -> Sequence[ClassSeries]:
    """Return the classes that documents are about, in their order by name."""
    days = [*days]
    first = first_day(days)
    by_class: dict[GpuClass, list[ClassDay]] = defaultdict(list)
    for each in days:
        by_class[each.of].append(each)
    return [
        _class(of, sorted(of_class, key=lambda each: each.day), first)
        for of, of_class in sorted(by_class.items())
        if first is not None
    ]


def _class(of: GpuClass, days: Sequence[ClassDay], first: date) -> ClassSeries:
    by_pod: dict[str, list[tuple[int, PodDay]]] = defaultdict(list)
    for day in days:
        for pod in day.pods:
            by_pod[pod.pod].append(((day.day - first).days, pod))
    return ClassSeries(
        of=of,
        pods=[_pod(pod, of_pod) for pod, of_pod in by_pod.items()],
        last=days[-1],
        left_out=max(each.left_out for each in days),
    )


def _pod(pod: str, days: Sequence[tuple[int, PodDay]]) -> PodSeries:
    seen = _joined((at, each.seen) for at, each in days)
    duty = _windows((at, each.duty) for at, each in days)
    told = 0
    for window in duty:
        told |= _WINDOW_BITS << (window * MINUTES_PER_WINDOW)
    return PodSeries(
        pod=pod,
        gpus=max(each.gpus for _, each in days),
        memory_mib=_windows((at, each.memory_mib) for at, each in days),
        duty=duty,
        dram=_windows((at, each.dram) for at, each in days),
        seen=seen,
        known=seen & told,
        busy=_joined((at, each.busy) for at, each in days),
    )


def _windows(days: Iterable[tuple[int, Sequence[int]]]) -> Windows:
    return {
        at * WINDOWS_PER_DAY + window: value
        for at, values in days
        for window, value in enumerate(values)
        if value != UNSEEN
    }


def _joined(days: Iterable[tuple[int, str]]) -> int:
    found = 0
    for at, minutes in days:
        found |= int(minutes or "0", 16) << (at * MINUTES_PER_DAY)
    return found
