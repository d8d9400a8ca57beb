"""Which days tell what a change saved.

A change is measured for thirty days: later the days before it are no fair comparison. A day is compared with the
days before the oldest change of the thirty days before it, for all changes since then together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby
from math import isclose
from typing import Final

from plimsoll_service.domain.savings.bills import DAYS_PER_MONTH, BilledDay, freed
from plimsoll_service.domain.savings.changes import LEAST_DAYS, Change, Episode
from plimsoll_service.domain.savings.comparison import (
    Comparison,
    Indistinct,
    NotYet,
    Outcome,
    Realised,
    compared,
)

MEASURED: Final = timedelta(days=30)
"""For so long after it a change is measured."""
_SAME: Final = 0.01
"""Amounts that differ by a smaller share are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Days of one part of the bill that are compared with the same days, before the same changes."""

    changes: Sequence[Change]
    before: Sequence[BilledDay]
    days: Sequence[BilledDay]
    end: date
    """The last day that tells something of the changes."""

    def compare(self, until: date) -> Comparison:
        """Return what the changes saved together.

        Args:
            until: the last day that is over.
        """
        known, needed = len(self.before), f"of at least {LEAST_DAYS}"
        if known < LEAST_DAYS:
            return Comparison(
                outcome=Indistinct(f"only {known} days before it are known, {needed}")
            )
        known = len(self.days)
        if known >= LEAST_DAYS:
            return compared(self.changes, self.before, self.days)
        why = f"only {known} days after it are known, {needed}"
        return Comparison(outcome=NotYet(why) if until < self.end else Indistinct(why))


def alone(episode: Episode) -> Measurement:
    """Return what measures the changes of an episode without those before it."""
    end = episode.end + MEASURED
    return Measurement(
        changes=episode.changes,
        before=episode.before,
        days=[day for day in episode.after if day.day <= end],
        end=end,
    )


def measurements(found: Sequence[Episode]) -> Iterator[Measurement]:
    """Yield the days after episodes, by the oldest episode that each is measured for."""
    for last, episode in enumerate(found):
        oldest = [_oldest(found[: last + 1], day.day) for day in episode.after]
        for number, pairs in groupby(zip(oldest, episode.after, strict=True), lambda each: each[0]):
            if number is not None:
                in_force = found[number : last + 1]
                yield Measurement(
                    changes=[change for each in in_force for change in each.changes],
                    before=in_force[0].before,
                    days=[day for _, day in pairs],
                    end=in_force[0].end + MEASURED,
                )


def own_share(change: Change, measurement: Measurement, together: Outcome) -> Outcome:
    """Return what one of the changes that are measured together saved.

    Where each took something off the bill for certain, and together they saved just that, each saved its own.
    """
    others = len(measurement.changes) - 1
    if not others or not isinstance(together, Realised):
        return together
    owns = [
        Realised({day.day: day.cost(freed(each.frees)) for day in measurement.days})
        for each in measurement.changes
    ]
    whole = sum(own.daily for own in owns)
    if all(each.exact for each in measurement.changes) and isclose(
        whole, together.daily, rel_tol=_SAME
    ):
        return owns[list(measurement.changes).index(change)]
    return Indistinct(
        f"{others} more were carried out within days of it; together they saved "
        f"${together.daily * DAYS_PER_MONTH:,.2f} a month, and were foreseen to save "
        f"${sum(each.daily for each in measurement.changes) * DAYS_PER_MONTH:,.2f}"
    )


def _oldest(found: Sequence[Episode], day: date) -> int | None:
    """Return the place of the oldest episode that a day is measured for; None: it is measured for none."""
    return next((n for n, each in enumerate(found) if day <= each.end + MEASURED), None)
