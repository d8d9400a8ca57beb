"""The savings of a cluster by day and month, and of each recommendation.

Each day is compared as a whole. So the saving of a month is no sum of its recommendations, which may hide one
another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby
from typing import Final

from plimsoll_service.domain.savings.bills import DAYS_PER_MONTH, BilledDay
from plimsoll_service.domain.savings.changes import (
    BEFORE,
    Change,
    Component,
    change_of,
    episodes,
)
from plimsoll_service.domain.savings.comparison import (
    Indistinct,
    NotYet,
    Outcome,
    Realised,
    compared,
)
from plimsoll_service.domain.savings.measurement import (
    MEASURED,
    Measurement,
    alone,
    measurements,
    own_share,
)
from plimsoll_service.wire.advice import Recommendation
from plimsoll_service.wire.savings import (
    Changed,
    RealisedRecommendation,
    SavingsDay,
    SavingsHistory,
    SavingsMonth,
    Verdict,
)

LOOK_BACK: Final = 2 * MEASURED + BEFORE
"""How much older than the first day of an answer the days are that it needs: changes in a row are one."""


def history_of(
    cluster: str,
    recommendations: Iterable[Recommendation],
    days: Sequence[BilledDay],
    *,
    since: date,
    until: date,
) -> SavingsHistory:
    """Return the savings of a cluster.

    Args:
        cluster: its id.
        recommendations: those that are kept; what was accepted counts.
        days: those that are known, in their order, from `LOOK_BACK` before `since`.
        since: the first day of the answer.
        until: the last day of the answer; it is over.
    """
    known_from = days[0].day if days else until
    taken = [each for each in recommendations if each.state in {"accepted", "done"}]
    found = {each.id: change_of(each) for each in taken}
    # A change before all days that are at hand was measured long ago.
    changes = [each for each in found.values() if each is not None and each.day >= known_from]
    of_part = {
        part: episodes((each for each in changes if each.component is part), days)
        for part in Component
    }
    of_change = {
        change.id: (alone(episode), change)
        for part in of_part.values()
        for episode in part
        for change in episode.changes
    }
    measured = [each for part in of_part.values() for each in measurements(part)]
    sums = _sums(measured, until)
    shown = [_day(day, sums[day.day]) for day in days if since <= day.day <= until]
    of_nodes = [each for each in measured if each.changes[0].component is Component.NODES]
    return SavingsHistory(
        cluster_id=cluster,
        since=since,
        until=until,
        months=tuple(_months(shown, of_nodes, max(since, known_from), until)),
        days=tuple(shown),
        recommendations=tuple(
            _recommendation(each, of_change.get(each.id), until)
            for each in sorted(taken, key=lambda r: (-r.monthly, r.id))
            if since <= _told_at(each, found[each.id]) <= until
        ),
    )


@dataclass(slots=True)
class _DaySum:
    """What all parts of the bill show of a day."""

    foreseen: float = 0.0
    untold: float = 0.0
    realised: float | None = None
    why: str = ""

    def add(self, day: date, foreseen: float, outcome: Outcome) -> None:
        """Add what one part shows."""
        self.foreseen += foreseen
        match outcome:
            case Realised(by_day):
                self.realised = (self.realised or 0.0) + by_day[day]
            case NotYet(why) | Indistinct(why):
                self.untold += foreseen
                self.why = f"{self.why}; {why}" if self.why else why


def _sums(measured: Iterable[Measurement], until: date) -> Mapping[date, _DaySum]:
    sums = defaultdict[date, _DaySum](_DaySum)
    for each in measured:
        outcome = each.compare(until).outcome
        foreseen = sum(change.daily for change in each.changes)
        for day in each.days:
            sums[day.day].add(day.day, foreseen, outcome)
    return sums


def _day(day: BilledDay, found: _DaySum) -> SavingsDay:
    return SavingsDay(
        day=day.day,
        cost=round(day.cost(day.holdings), 4),
        prices=day.prices.source,
        assumed=day.is_assumed,
        foreseen=round(found.foreseen, 4),
        untold=round(found.untold, 4),
        realised=None if found.realised is None else round(found.realised, 4),
        why=found.why,
    )


def _months(
    shown: Sequence[SavingsDay], of_nodes: Sequence[Measurement], begin: date, until: date
) -> Iterator[SavingsMonth]:
    """Yield the months from one day to another; a month without a known day is a gap."""
    known = {each.day: each for each in shown}
    calendar = (begin + timedelta(days=n) for n in range((until - begin).days + 1))
    for month, group in groupby(calendar, lambda day: f"{day:%Y-%m}"):
        dates = list(group)
        days = [known[day] for day in dates if day in known]
        told = [each.realised for each in days if each.realised is not None]
        yield SavingsMonth(
            month=month,
            days=len(days),
            gaps=len(dates) - len(days),
            assumed=sum(each.assumed for each in days),
            cost=round(sum(each.cost for each in days), 2),
            foreseen=round(sum(each.foreseen for each in days), 2),
            untold=round(sum(each.untold for each in days), 2),
            realised=round(sum(told), 2) if told else None,
            why=tuple(dict.fromkeys(each.why for each in days if each.why)),
            changed=_changed(of_nodes, known.keys() & dates),
        )


def _changed(of_nodes: Sequence[Measurement], month: set[date]) -> Changed | None:
    """Return how a month differs from the days before the first change that it is measured for."""
    its = [each for each in of_nodes if each.before and any(day.day in month for day in each.days)]
    if not its:
        return None
    days = [day for each in its for day in each.days if day.day in month]
    changes = {change.id: change for each in its for change in each.changes}
    return compared(list(changes.values()), its[0].before, days).changed


def _told_at(each: Recommendation, change: Change | None) -> date:
    return (change.at if change else each.changed_at).date()


def _recommendation(
    each: Recommendation, found: tuple[Measurement, Change] | None, until: date
) -> RealisedRecommendation:
    if found is None:
        told, outcome, days, seen_at = None, _unseen(each), 0, each.seen_at
    else:
        measurement, change = found
        told, days, seen_at = measurement.compare(until), len(measurement.days), change.at
        outcome = own_share(change, measurement, told.outcome)
    verdict, realised, why = _words(outcome)
    return RealisedRecommendation(
        id=each.id,
        kind=each.kind,
        about=each.about,
        seen_at=seen_at,
        foreseen=each.monthly,
        verdict=verdict,
        realised=realised,
        days=days,
        why=why,
        changed=told.changed if told else None,
    )


def _words(outcome: Outcome) -> tuple[Verdict, float | None, str]:
    match outcome:
        case Realised():
            return "realised", round(outcome.daily * DAYS_PER_MONTH, 2), ""
        case NotYet(why):
            return "not yet", None, why
        case Indistinct(why):
            return "cannot be told apart", None, why


def _unseen(each: Recommendation) -> Outcome:
    """Return why nothing is measured of a recommendation that changed nothing which is shown."""
    if each.frees is None:
        return Indistinct("an older version made it, and did not note what it takes off the bill")
    if each.state == "done" and not each.measurable:
        return Indistinct("the cluster does not show whether AWS still bills it; your bill does")
    return NotYet("the cluster does not show that it was carried out")
