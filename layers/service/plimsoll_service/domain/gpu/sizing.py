"""What a class of workload needs of a GPU: a slice, a number of replicas, or the whole GPU and why."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, Literal

from plimsoll_service.domain.gpu.cards import CARDS, Card, Profile
from plimsoll_service.domain.gpu.series import MINUTES_PER_WINDOW, ClassSeries, Windows
from plimsoll_service.domain.gpu.time_slicing import slowdown

DRAM_HIGH_PERMILLE: Final = 500
"""Thousandths of the memory bandwidth: a class that uses more and its neighbours slow each other down."""
QUANTILE: Final = 0.95
"""Of the maxima of 15 minutes: so busy a class counts as."""
MOST_REPLICAS: Final = 8
MOST_SLOWDOWN_FACTOR: Final = 1.5
"""Replicas by time-slicing are not advised where a kernel would take longer by more than this factor."""
_FULL_DUTY_PERMILLE: Final = 1000

type Cause = Literal[
    "memory bandwidth", "cpu", "bursts", "memory", "duty", "several GPUs", "unknown"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A MIG instance."""

    profile: Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSlices:
    """So many pods take turns on a GPU, and share its memory and its faults."""

    replicas: int
    slowdown: float
    """By this factor a kernel takes longer, by the time for which the other pods are expected to work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoNotSplit:
    """The whole GPU."""

    cause: Cause
    reason: str


type Size = Slice | TimeSlices | DoNotSplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """What a part of the time shows of a class."""

    of: ClassSeries
    peaks: Sequence[int]
    """The most memory of each pod in MiB, the largest first."""
    active: Sequence[float]
    """The share of its known minutes in which each pod works, the largest first."""
    duty: float
    """How busy it is in thousandths of a whole GPU; 0 where nothing tells."""
    dram: int | None


def learn(of: ClassSeries, begin: int, end: int) -> Learnt:
    """Return what the windows from `begin` to before `end` show."""
    minutes = ((1 << (end - begin) * MINUTES_PER_WINDOW) - 1) << begin * MINUTES_PER_WINDOW
    duty = _quantile((each.duty for each in of.pods), begin, end) or 0
    card = CARDS.get(of.of.model)
    profile = card.profiles.get(of.profile) if card is not None else None
    active = []
    for each in of.pods:
        known = (each.known & minutes).bit_count()
        if known:
            active.append((each.busy & each.known & minutes).bit_count() / known)
    return Learnt(
        of=of,
        peaks=sorted(of.peaks(begin, end).values(), reverse=True),
        active=sorted(active, reverse=True) or [1.0],
        duty=duty * profile.compute / card.compute if card and profile else duty,
        dram=_quantile((each.dram for each in of.pods), begin, end),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizer:
    """Sizes classes for one card."""

    card: Card
    cpu_bound: Collection[tuple[str, str]] = ()
    """Namespace and name of owners whose CPUs hold their GPUs back."""

    def size(self, learnt: Learnt, headroom: float) -> Size:
        """Return what a class needs, with so large a share of its peak above the peak."""
        refused = self._refused(learnt)
        if refused is not None:
            return refused
        return (
            self._slice(learnt, headroom)
            if self.card.profiles
            else _replicas(self.card, learnt, headroom)
        )

    def _refused(self, learnt: Learnt) -> DoNotSplit | None:
        of = learnt.of
        if of.last.sharing != "none":
            reason = f"its pods share a GPU by {of.last.sharing}, and metrics are those of the GPU"
            return DoNotSplit(cause="unknown", reason=reason)
        if not learnt.peaks:
            return DoNotSplit(cause="unknown", reason="nothing tells how much memory it uses")
        if of.gpus > 1:
            return DoNotSplit(cause="several GPUs", reason=f"its pods hold {of.gpus} GPUs each")
        if (of.of.namespace, of.of.owner) in self.cpu_bound:
            reason = "its CPUs hold it back: raise its CPU request first"
            return DoNotSplit(cause="cpu", reason=reason)
        if learnt.dram is not None and learnt.dram >= DRAM_HIGH_PERMILLE:
            reason = (
                f"it uses {learnt.dram / 10:.0f} % of the memory bandwidth; "
                f"{DRAM_HIGH_PERMILLE / 10:.0f} % and more is not shared"
            )
            return DoNotSplit(cause="memory bandwidth", reason=reason)
        return None

    def _slice(self, learnt: Learnt, headroom: float) -> Size:
        need = ceil(learnt.peaks[0] * (1 + headroom))
        proper = [p for p in self.card.profiles.values() if p.compute < self.card.compute]
        holding = [each for each in proper if each.usable_mib >= need]
        if not holding:
            most = max(each.usable_mib for each in proper)
            reason = f"it needs {need} MiB, and no slice has more than {most} MiB"
            return DoNotSplit(cause="memory", reason=reason)
        fitting = [
            each
            for each in holding
            if learnt.duty <= _FULL_DUTY_PERMILLE * each.compute / self.card.compute
        ]
        if not fitting:
            reason = f"it works {learnt.duty / 10:.0f} % of the time, more than a slice could"
            return DoNotSplit(cause="duty", reason=reason)
        return Slice(profile=min(fitting, key=self.share))

    def share(self, profile: Profile) -> float:
        """Return what a slice takes of a GPU: of compute or memory slices, as there is more of them."""
        return max(profile.compute / self.card.compute, profile.memory / self.card.memory)

    def cost(self, of: ClassSeries, size: Size) -> float:
        """Return how many GPUs a pod of a class takes."""
        match size:
            case Slice(profile=profile):
                return self.share(profile)
            case TimeSlices(replicas=replicas):
                return 1 / replicas
            case DoNotSplit():
                return of.gpus


def _replicas(card: Card, learnt: Learnt, headroom: float) -> Size:
    """Return the most replicas of which the largest pods fit together: the device plugin places blindly."""
    best: TimeSlices | None = None
    for count in range(2, MOST_REPLICAS + 1):
        need = ceil(sum(_padded(learnt.peaks, count)) * (1 + headroom))
        slower = slowdown(_padded(learnt.active, count - 1))
        if need > card.memory_mib:
            reason = f"{count} pods need {need} MiB of {card.memory_mib} MiB"
            return best or DoNotSplit(cause="memory", reason=reason)
        if slower > MOST_SLOWDOWN_FACTOR:
            reason = f"{count} pods would slow each other down {slower:.1f} times"
            return best or DoNotSplit(cause="duty", reason=reason)
        best = TimeSlices(replicas=count, slowdown=slower)
    assert best is not None  # noqa: S101 - the loop ran
    return best


def _padded(values: Sequence[float], count: int) -> Sequence[float]:
    """Return the largest; the pods that a class does not have yet count as its largest."""
    return [*values[:count], *[values[0]] * (count - len(values))]


def _quantile(series: Iterable[Windows], begin: int, end: int) -> int | None:
    """Return the value that `QUANTILE` of them do not exceed; None: there are none."""
    found = sorted(value for each in series for at, value in each.items() if begin <= at < end)
    return found[ceil(len(found) * QUANTILE) - 1] if found else None
