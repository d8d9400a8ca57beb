"""Which zonal shifts stand, by the events of them that were heard.

Events come twice, late, in any order, or not at all: the newest of a shift says whether it stands. What ARC
lists when it is asked is written down as events too, and where it does not answer, each ends by itself when
AWS would have ended it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Self

from plimsoll.domain.notices import Cause, ZonalShift
from plimsoll.domain.observation import ShiftedZone
from plimsoll.domain.reports import Reason, Report

LONGEST_SHIFT: Final[Mapping[Cause, timedelta]] = {
    "practice": timedelta(hours=1),
    "manual": timedelta(hours=72),
    "autoshift": timedelta(hours=72),
    "experiment": timedelta(hours=72),
}
"""How long a shift stands after the newest event of it that was heard. AWS ends practice runs after half an
hour, and takes at most 72 hours for what an owner starts. An autoshift has no bound: if its end was not heard,
it is taken for as long as that.
https://docs.aws.amazon.com/arc-zonal-shift/latest/api/API_ZonalShiftSummary.html"""
BEHIND: Final = timedelta(minutes=1)
"""How far an answer of ARC may be behind what it is about: what was told since then, it does not contradict.
An assumption: no page of AWS says how soon its lists follow."""
LISTED: Final[frozenset[Cause]] = frozenset({"autoshift", "manual", "practice"})
"""What is over when ARC lists it no more. Its pages do not promise that experiments are listed.
https://docs.aws.amazon.com/arc-zonal-shift/latest/api/API_ListZonalShifts.html"""


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

    @classmethod
    def of(cls, shift: ZonalShift, cluster: str, zone: str) -> Self:
        """Return what a notice says for one of the clusters that it is about.

        Args:
            shift: the notice.
            cluster: the cluster, by name.
            zone: the zone, by the name that it has in the account of the cluster.
        """
        return cls(
            zone=zone,
            cause=shift.cause,
            cluster=None if shift.cause == "autoshift" else cluster,
            active=shift.active,
            at=shift.time,
        )

    @property
    def shift(self) -> tuple[str, str, str]:
        """What the events of one shift have in common: of a resource there is never more than one."""
        return self.zone, self.cause, self.cluster or ""

    @property
    def key(self) -> tuple[str, str, str, bool, datetime]:
        """What two tellings of one event have in common."""
        return (*self.shift, self.active, self.at)


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
        # If two events have the same time, the end of the shift comes last and counts.
        told.sort(key=_order)
        newest = told[-1]
        if not newest.active or newest.at + LONGEST_SHIFT[newest.cause] <= now:
            continue
        ended = max((n for n, event in enumerate(told) if not event.active), default=-1)
        one = ShiftedZone(since=told[ended + 1].at, practice=newest.cause == "practice")
        other = found.get(newest.zone, one)
        found[newest.zone] = ShiftedZone(
            since=min(one.since, other.since),
            practice=one.practice and other.practice,
        )
    return found


def inferred_events(
    known: Iterable[ShiftEvent], listed: Iterable[ShiftEvent], asked: datetime
) -> Sequence[ShiftEvent]:
    """Return what the events that were heard lack, by what ARC lists as active.

    A shift that no event told of stands since it began. One that is listed although its end was told, or whose
    newest event is so old that it would soon end by itself, stands at the time of the answer.

    Args:
        known: the events that were heard, and what was made up before.
        listed: what ARC lists, at the time that it began.
        asked: when ARC was asked.
    """
    at = asked - BEHIND
    newest = newest_events(known)
    # Sorted from the latest to the earliest: the earliest event of a shift stays in the dict.
    standing = {event.shift: event for event in sorted(listed, key=_order, reverse=True)}
    found = []
    for shift, event in standing.items():
        last, old = newest.get(shift), at - LONGEST_SHIFT[event.cause] / 2
        if last is not None and last.active and last.at > old:
            continue
        told = event if event.at > max(old, last.at if last else old) else replace(event, at=at)
        if last is None or told.at > last.at:
            found.append(told)
    return found + [
        replace(last, active=False, at=at)
        for shift, last in newest.items()
        if shift not in standing and last.active and last.at < at and last.cause in LISTED
    ]


def newest_events(events: Iterable[ShiftEvent]) -> Mapping[tuple[str, str, str], ShiftEvent]:
    """Return the event that counts of each shift."""
    return {event.shift: event for event in sorted(events, key=_order)}


def shift_report(shift: ZonalShift, reason: str) -> Report:
    """Return what is kept of a notice for people; a zone belongs to no cluster."""
    return Report(
        interruption=f"{shift.zone_id or 'zone'}@{shift.id}",
        cluster="*",
        node="",
        kind=shift.kind,
        noticed=shift.time,
        closed=None if shift.active else shift.time,
        reasons=(Reason(why=reason),),
    )


def _order(event: ShiftEvent) -> tuple[datetime, bool]:
    return event.at, not event.active
