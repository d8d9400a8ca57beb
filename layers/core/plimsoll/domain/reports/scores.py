"""The score of the promises of a cluster: for how long fewer replicas were to be missing, and for how long they were.

One score is kept for each cluster and month. Each run of placement adds the time since the run before, under the
version that it read, so that a run that is played twice, or beside another, adds once. What was predicted is the
probability to be below the promise, times that time. What came is read from the reports of interruptions: they tell
when a workload fell below what is promised, to the second, and its pods tell when the last that it lacked was Ready.
A fall counts once however often and however late it is told: all before `until` is counted.

The first run of a month starts where the last run of the month before ended; the minutes between are left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice, zip_longest
from typing import Final, NamedTuple

from plimsoll.domain.reports.report import Report

MOST_SCORED: Final = 100
"""Workloads of a cluster that have a score; of more, all namespaces have a share."""
LONGEST_STEP: Final = timedelta(hours=1)
"""Where no run came for longer, nobody knows what stood meanwhile: no more is added."""
SCORED_AFTER: Final = timedelta(days=30)
"""So long predictions are compared before a score is told."""
MONTHS_KEPT: Final = 13
_LATE: Final = timedelta(hours=1)
"""How late a report may tell of a fall: later than any drain writes it."""
_WHOLE: Final = 10
"""From so many minutes on tenths are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A workload of which something is promised, as a run of placement sees it."""

    workload: str
    below: float
    """The probability that fewer replicas are Ready than promised."""
    wanted: int
    ready_since: Sequence[datetime]
    """Since when each of its Ready replicas is."""

    @property
    def short(self) -> bool:
        """Whether fewer are Ready than promised."""
        return len(self.ready_since) < self.wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """How one workload, or a cluster, kept its promise."""

    judged: timedelta = timedelta()
    """For how long it was judged."""
    predicted: timedelta = timedelta()
    """How much of that it was to be below its promise."""
    observed: timedelta = timedelta()
    """How much it was, after interruptions."""

    def plus(self, other: Kept) -> Kept:
        """Return the sum of both."""
        return replace(
            self,
            judged=self.judged + other.judged,
            predicted=self.predicted + other.predicted,
            observed=self.observed + other.observed,
        )

    @property
    def scored(self) -> bool:
        """Whether it was judged for long enough."""
        return self.judged >= SCORED_AFTER

    @property
    def says(self) -> str:
        """The score in words, or that there is none yet."""
        if not self.scored:
            days = f"{self.judged / timedelta(days=1):.0f} of {SCORED_AFTER.days} days"
            return f"not yet scored: compared for {days}"
        return self.compared

    @property
    def compared(self) -> str:
        """Both times, in words."""
        return f"predicted {_minutes(self.predicted)}, came {_minutes(self.observed)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadScore(Kept):
    """How one workload kept its promise in a month, and up to when its falls are counted."""

    until: datetime
    """All falls up to then are counted, or were before it was judged."""
    falling: bool = False
    """Whether the last of them had not ended."""
    short: bool = False
    """Whether fewer were Ready than promised, for whatever reason, when the last run looked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How the workloads of a cluster kept their promises in one month."""

    cluster: str
    month: str
    """As in `2026-11`."""
    at: datetime
    """Up to when time is added."""
    judged: timedelta = timedelta()
    """For how long any workload was judged."""
    workloads: Mapping[str, WorkloadScore] = field(default_factory=dict)
    left_out: int = 0
    """Workloads of the last run that were too many."""
    version: int = 0
    """Of what is stored; 0: nothing is."""

    @property
    def total(self) -> Kept:
        """The sum of all workloads, over the time in which any was judged."""
        found = Kept()
        for each in self.workloads.values():
            found = found.plus(each)
        return replace(found, judged=self.judged)


class _Step(NamedTuple):
    """What one run adds."""

    last: datetime
    """When the last run looked at the cluster."""
    now: datetime
    reports: Sequence[Report]

    @property
    def adds(self) -> timedelta:
        """How much time."""
        return min(self.now - self.last, LONGEST_STEP)


def scored(
    before: Score | None,
    cluster: str,
    judged: Iterable[Judged],
    reports: Iterable[Report],
    now: datetime,
) -> Score:
    """Return the score of the present month after a run of placement.

    Args:
        before: of this month, or of the one before; None: there is none.
        cluster: whose it is.
        judged: the workloads of which something is promised now.
        reports: the newest reports of its interruptions.
        now: when the run looked at the cluster.
    """
    present = {each.workload: each for each in judged}
    found = _of_month(before, cluster, present, now)
    if now < found.at:
        return found  # this run is late: another has added its time
    step = _Step(last=found.at, now=now, reports=tuple(reports))
    named = [*found.workloads.keys() & present.keys(), *_new(found.workloads, present)]
    scores = {
        name: replace(score, until=now, falling=False, short=False)
        for name, score in found.workloads.items()
    }
    for name in named:
        known = found.workloads.get(name)
        scores[name] = (
            WorkloadScore(until=now, short=present[name].short)
            if known is None
            else _added(known, present[name], step)
        )
    return replace(
        found,
        at=now,
        judged=found.judged + (step.adds if present else timedelta()),
        workloads=dict(sorted(scores.items())),
        left_out=len(present) - len(named),
    )


def told_since(before: Score) -> datetime:
    """Return the time since which interruptions may tell of falls that the next run adds."""
    falls = [each.until for each in before.workloads.values() if each.falling]
    return min([before.at, *falls]) - _LATE


def month_of(now: datetime) -> str:
    """Return the month of a time."""
    return f"{now:%Y-%m}"


def months_until(now: datetime) -> Sequence[str]:
    """Return the months of which scores are kept, the newest first."""
    first = now.year * 12 + now.month - 1
    return [f"{n // 12}-{n % 12 + 1:02}" for n in range(first, first - MONTHS_KEPT, -1)]


def _minutes(time: timedelta) -> str:
    """Return a time in minutes, to the tenth where it is short."""
    found = time / timedelta(minutes=1)
    return f"{found:,.0f} min" if found >= _WHOLE or not found else f"{found:.1f} min"


def _of_month(before: Score | None, cluster: str, present: Collection[str], now: datetime) -> Score:
    month = month_of(now)
    if before is None:
        return Score(cluster=cluster, month=month, at=now)
    if before.month >= month:
        return before
    begins = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return Score(
        cluster=cluster,
        month=month,
        at=max(before.at, begins),
        workloads={
            name: WorkloadScore(
                until=max(each.until, begins), falling=each.falling, short=each.short
            )
            for name, each in before.workloads.items()
            if name in present
        },
    )


def _new(known: Mapping[str, WorkloadScore], present: Mapping[str, Judged]) -> Iterator[str]:
    """Yield those that are judged for the first time, one of each namespace in turn, as many as there is room for."""
    by_namespace: dict[str, list[str]] = defaultdict(list)
    for name in sorted(present.keys() - known.keys()):
        by_namespace[name.partition("/")[0]].append(name)
    turns = zip_longest(*by_namespace.values())
    found = (name for turn in turns for name in turn if name is not None)
    return islice(found, max(0, MOST_SCORED - len(known)))


def _added(known: WorkloadScore, judged: Judged, step: _Step) -> WorkloadScore:
    """Return the score of a workload with one run more."""
    after = replace(
        known,
        judged=known.judged + step.adds,
        predicted=known.predicted + judged.below * step.adds,
        falling=False,
        short=judged.short,
    )
    until = known.until
    if not known.falling:  # what fell in a long pause is not judged, as what was predicted for it
        until = max(until, step.now - step.adds - _LATE)
    told = (report.below(judged.workload, judged.wanted) for report in step.reports)
    falls = [fall for fall in told if fall is not None and until < fall <= step.now]
    if not (falls or known.falling):
        return after
    first = until if known.falling else min(falls)
    ended = step.now
    if not judged.short:
        ended = sorted(judged.ready_since)[judged.wanted - 1]
        if first < step.last and not known.short:  # told late: it was over when the last run looked
            ended = min(ended, step.last)
    ended = min(max(ended, first), step.now)
    return replace(
        after,
        observed=known.observed + (ended - first),
        until=max([ended, *falls]),
        falling=judged.short,
    )
