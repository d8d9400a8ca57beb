"""Which zonal shifts stand, by the events of them that were heard.

Events come twice, late, in any order, or not at all: the newest of a shift says whether it stands, and
each ends by itself when AWS would have ended it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.notices.zonal_shift import Cause

LONGEST: Final[Mapping[Cause, timedelta]] = {
    "practice": timedelta(hours=1),
    "manual": timedelta(hours=72),
    "autoshift": timedelta(hours=72),
    "experiment": timedelta(hours=72),
}
"""How long a shift stands after the newest event of it that was heard. AWS ends practice runs after half an
hour, and takes at most 72 hours for what an owner starts. An autoshift has no bound: if its end was not heard,
it is taken for as long as that.
https://docs.aws.amazon.com/arc-zonal-shift/latest/api/API_ZonalShiftSummary.html"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftEvent:
    """That a shift away from a zone began, goes on, or is over, as one event told it."""

    zone: str
    """Its name in the account of the clusters, not its id."""
    cause: Cause
    cluster: str | None = None
    """The cluster that it is about; None: all of the account and region."""
    active: bool
    at: datetime

    @property
    def shift(self) -> tuple[str, str, str]:
        """What the events of one shift have in common: of a resource there is never more than one."""
        return self.zone, self.cause, self.cluster or ""

    @property
    def key(self) -> tuple[str, str, str, bool, datetime]:
        """What two tellings of one event have in common."""
        return (*self.shift, self.active, self.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftedZone:
    """A zone that traffic is sent away from now."""

    since: datetime
    practice: bool = False
    """Whether nothing is wrong there: capacity is frozen, but pods stay."""


def shifted_zones(
    events: Iterable[ShiftEvent], cluster: str, now: datetime
) -> Mapping[str, ShiftedZone]:
    """Return the zones that traffic is shifted away from for a cluster, by name."""
    of_shift: dict[tuple[str, str, str], list[ShiftEvent]] = defaultdict(list)
    for event in events:
        if event.cluster in {None, cluster}:
            of_shift[event.shift].append(event)
    found: dict[str, ShiftedZone] = {}
    for told in of_shift.values():
        told.sort(key=lambda event: (event.at, not event.active))
        newest = told[-1]
        if not newest.active or newest.at + LONGEST[newest.cause] <= now:
            continue
        ended = max((n for n, event in enumerate(told) if not event.active), default=-1)
        one = ShiftedZone(since=told[ended + 1].at, practice=newest.cause == "practice")
        other = found.get(newest.zone, one)
        found[newest.zone] = ShiftedZone(
            since=min(one.since, other.since),
            practice=one.practice and other.practice,
        )
    return found
