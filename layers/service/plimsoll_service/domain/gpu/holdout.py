"""How much memory above its peak a class is given on a card: as little as held-out time allows.

Each holdout learns from the first part of the time and judges the rest. A pod is counted once in a holdout,
however often it overflows: its windows depend on each other. Pods that would keep the whole GPU cannot
overflow, and do not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from plimsoll_service.domain.gpu.bounds import still_needed, upper_bound
from plimsoll_service.domain.gpu.series import ClassSeries
from plimsoll_service.domain.gpu.sizing import (
    DoNotSplit,
    Learnt,
    Size,
    Sizer,
    Slice,
    TimeSlices,
    learn,
)

HEADROOMS: Final = (0.0, 0.1, 0.2, 0.3, 0.5)
LEARNT_SHARES: Final = (0.3, 0.4, 0.5, 0.6, 0.7)
"""Shares of the time that are learnt from, one holdout each."""
DECIDES_FROM: Final = 0.5
"""A holdout that learns from less is reported, and does not decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A holdout, and how many pods overflow in the time that was not learnt from."""

    learnt: float
    """Share of the time that was learnt from."""
    over: int
    judged: int
    whole: int
    """Pods that keep the whole GPU, and are not judged."""
    bursting: frozenset[int]
    """Places of the classes of which a pod overflows."""

    @property
    def decides(self) -> bool:
        """Whether enough of the time was learnt from."""
        return self.learnt >= DECIDES_FROM

    @property
    def share(self) -> float:
        """The share of pods over; 1 where none was judged."""
        return self.over / self.judged if self.judged else 1.0

    @property
    def bound(self) -> float:
        """The largest share that this leaves possible, at 95 % confidence."""
        return upper_bound(self.over, self.judged)

    def needed(self, within: float) -> int:
        """Return how many more clean pods would prove `within` at 95 % confidence."""
        return still_needed(self.over, self.judged, within)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdout:
    """A part of the time that is learnt from, and the rest."""

    share: float
    learnt: Sequence[Learnt]
    """Of each class of a card."""
    held_out: Sequence[Mapping[str, int]]
    """The peaks of the pods of each class, in MiB."""
    cut: int
    """The first window of the rest."""
    end: int

    def judged(self, sizer: Sizer, headroom: float) -> Judgement:
        """Return how many pods overflow with so much headroom."""
        sizes = [sizer.size(each, headroom) for each in self.learnt]
        over = [self._over(place, size, sizer) for place, size in enumerate(sizes)]
        pods = [
            len(pods) if learnt.peaks else 0
            for pods, learnt in zip(self.held_out, self.learnt, strict=True)
        ]
        judged = sum(
            count
            for count, size in zip(pods, sizes, strict=True)
            if not isinstance(size, DoNotSplit)
        )
        return Judgement(
            learnt=self.share,
            over=sum(over),
            judged=judged,
            whole=sum(pods) - judged,
            bursting=frozenset(place for place, count in enumerate(over) if count),
        )

    def _over(self, place: int, size: Size, sizer: Sizer) -> int:
        match size:
            case Slice(profile=profile):
                return sum(mib > profile.usable_mib for mib in self.held_out[place].values())
            case TimeSlices(replicas=replicas):
                of = self.learnt[place].of
                return self._over_together(of, replicas, sizer.card.memory_mib)
            case DoNotSplit():
                return 0
            case _:
                assert_never(size)

    def _over_together(self, of: ClassSeries, replicas: int, mib: int) -> int:
        """Return how many pods are ever among those of which the largest overflow a GPU together."""
        found: set[str] = set()
        for window in range(self.cut, self.end):
            used = [(p.memory_mib[window], p.pod) for p in of.pods if window in p.memory_mib]
            largest = sorted(used, reverse=True)[:replicas]
            if sum(each for each, _ in largest) > mib:
                found |= {pod for _, pod in largest}
        return len(found)


def holdouts_of(classes: Sequence[ClassSeries], begin: int, end: int) -> Sequence[Holdout]:
    """Return the holdouts of the windows from `begin` to before `end`."""
    return [_holdout(classes, begin, end, share) for share in LEARNT_SHARES]


def _holdout(classes: Sequence[ClassSeries], begin: int, end: int, share: float) -> Holdout:
    cut = begin + round((end - begin) * share)
    return Holdout(
        share=share,
        learnt=[learn(each, begin, cut) for each in classes],
        held_out=[each.peaks(cut, end) for each in classes],
        cut=cut,
        end=end,
    )
