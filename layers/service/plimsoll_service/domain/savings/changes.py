"""What was carried out on the advice of the service, and which of it can only be measured together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import Enum
from typing import Final

from plimsoll_service.domain.savings.bills import (
    DAYS_PER_MONTH,
    LOAD_BALANCER,
    ON_DEMAND,
    SPOT,
    VOLUME,
    BilledDay,
    Holdings,
    freed,
    total,
)
from plimsoll_service.wire.advice import Frees, Kind, Recommendation

LEAST_DAYS: Final = 3
"""Before a change, and after it: fewer are no mean."""
MOST_DAYS_BEFORE: Final = 7
"""A week has each of its days once."""
BEFORE: Final = timedelta(days=14)
"""Older days are no word about the days before a change."""


class Component(Enum):
    """A part of the bill that is compared by itself; its value are kinds of what is billed."""

    NODES = frozenset({ON_DEMAND, SPOT})
    VOLUMES = frozenset({VOLUME})
    LOAD_BALANCERS = frozenset({LOAD_BALANCER})


_COMPONENTS: Final[dict[Kind, Component]] = {
    "orphan-volume": Component.VOLUMES,
    "idle-load-balancer": Component.LOAD_BALANCERS,
}
_EXACT: Final[frozenset[Kind]] = frozenset(
    {"consolidate-node", "orphan-volume", "idle-load-balancer"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A recommendation that came true."""

    id: str
    kind: Kind
    at: datetime
    daily: float
    """Dollars that it was foreseen to save on a day."""
    frees: Frees

    @property
    def component(self) -> Component:
        """Which part of the bill it lowers."""
        return _COMPONENTS.get(self.kind, Component.NODES)

    @property
    def exact(self) -> bool:
        """Whether the cluster shows which node, volume or load balancer went, so that it can save no more than that."""
        return self.kind in _EXACT

    @property
    def day(self) -> date:
        """The day that is neither before nor after it."""
        return self.at.date()


@dataclass(slots=True)
class Episode:
    """Changes of one part of the bill without enough days between them to measure one without the other."""

    changes: list[Change]
    before: Sequence[BilledDay] = ()
    """The days before the first one, and after the episode before this."""
    after: Sequence[BilledDay] = field(default_factory=list)
    """The days after the last one, and before the next episode."""

    @property
    def begin(self) -> date:
        """The day of the first change."""
        return self.changes[0].day

    @property
    def end(self) -> date:
        """The day of the last change."""
        return self.changes[-1].day


def change_of(each: Recommendation) -> Change | None:
    """Return what a recommendation changed; None: nothing yet, or nothing that can be told."""
    # What its owner makes of a mix shows in the nodes alone, some time after it was accepted.
    mixed = each.kind == "instance-mix" and each.state == "accepted"
    at = each.changed_at if mixed else each.seen_at
    if each.frees is None or at is None:
        return None
    daily = each.monthly / DAYS_PER_MONTH
    return Change(id=each.id, kind=each.kind, at=at, daily=daily, frees=each.frees)


def episodes(changes: Iterable[Change], days: Sequence[BilledDay]) -> Sequence[Episode]:
    """Return the changes of one part of the bill, in their order, with the days before and after."""
    found: list[Episode] = []
    for change in sorted(changes, key=lambda c: (c.at, c.id)):
        between = [d for d in days if found and found[-1].end < d.day < change.day]
        if found and len(between) < LEAST_DAYS:
            found[-1].changes.append(change)
            continue
        if found:
            found[-1].after = between
        since = change.day - BEFORE
        known = between if found else [d for d in days if d.day < change.day]
        before = [d for d in known if d.day >= since]
        found.append(Episode([change], before=before[-MOST_DAYS_BEFORE:]))
    if found:
        found[-1].after = [d for d in days if d.day > found[-1].end]
    return found


def freed_by(changes: Iterable[Change]) -> Holdings:
    """Return what changes took off the bill for certain."""
    return total(freed(each.frees) for each in changes)
