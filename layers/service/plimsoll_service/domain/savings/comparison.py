"""What changes saved: the days after them against the days before, each day at its own prices.

What else changed costs or saves something too. Of nodes, more requests explain more nodes, and fewer requests
explain fewer. What nothing explains counts against the advice, or cannot be told apart; it never counts for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from statistics import fmean
from typing import Final

from plimsoll_service.domain.savings.bills import (
    BilledDay,
    Holdings,
    difference,
    mean,
    means_of,
    only,
)
from plimsoll_service.domain.savings.changes import Change, Component, freed_by
from plimsoll_service.wire.savings import Changed

STEADY: Final = 0.01
"""A smaller share of requests than this explains no change of nodes."""
EXPLAINS: Final = 0.5
"""Requests explain a change of nodes that costs at most twice what they are worth: nodes come whole."""
_CENT: Final = 0.01


@dataclass(frozen=True, slots=True)
class Realised:
    """What was saved."""

    by_day: Mapping[date, float]
    """Dollars."""

    @property
    def daily(self) -> float:
        """The mean of a day."""
        return fmean(self.by_day.values())


@dataclass(frozen=True, slots=True)
class NotYet:
    """Too few days have passed."""

    why: str


@dataclass(frozen=True, slots=True)
class Indistinct:
    """What was saved cannot be told apart from what else changed."""

    why: str


type Outcome = Realised | NotYet | Indistinct


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """By which share what pods request changed, without what was advised."""

    grew: float
    fell: float
    """Above 0, as `grew`: processors may fall while memory grows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Days after changes beside the days before them."""

    outcome: Outcome
    changed: Changed | None = None
    """None: there are too few days to compare."""


def compared(
    changes: Sequence[Change], before: Sequence[BilledDay], after: Sequence[BilledDay]
) -> Comparison:
    """Return what changes of one part of the bill saved together.

    Args:
        changes: at least one; all of the same component.
        before: at least one day without them.
        after: at least one day with all of them.
    """
    component, base = changes[0].component, mean(before)
    held, gone = only(component.value, base), freed_by(changes)
    exact = all(each.exact for each in changes)
    removed = {day.day: day.cost(gone) for day in after}
    fell = {d.day: d.cost(difference(held, only(component.value, d.holdings))) for d in after}
    others = fmean(removed.values()) - fmean(fell.values())
    return Comparison(
        outcome=_without_price(held, gone, after)
        or _outcome(changes, _Bill(held, removed, fell, others), before, after),
        changed=Changed(
            before=means_of(before),
            after=means_of(after),
            prices=round(
                fmean(d.cost(base) for d in after) - fmean(d.cost(base) for d in before), 2
            ),
            others=round(others, 2) if exact else None,
        ),
    )


@dataclass(frozen=True, slots=True)
class _Bill:
    """One part of the bill: dollars of days after the changes."""

    held: Holdings
    removed: Mapping[date, float]
    """What went for certain, by day."""
    fell: Mapping[date, float]
    """By how much the bill is below that of the days before at the same prices, by day."""
    others: float
    """What else costs more, on the mean day."""


def _outcome(
    changes: Sequence[Change],
    bill: _Bill,
    before: Sequence[BilledDay],
    after: Sequence[BilledDay],
) -> Outcome:
    exact = all(each.exact for each in changes)
    match changes[0].component:
        case Component.NODES if exact:
            return _of_gone_nodes(bill, demand(changes, before, after), after)
        case Component.NODES:
            return _of_other_nodes(bill, demand(changes, before, after), before)
        case Component.VOLUMES:
            return Realised(
                bill.removed
            )  # its object is gone, and so is the volume that it was deleted with
        case Component.LOAD_BALANCERS:
            if bill.others < _CENT:
                return Realised(bill.removed)
            return Indistinct(
                f"as many load balancers stand as before, or others came: they cost ${bill.others:,.2f} a day more "
                "than without those that went"
            )


def _of_gone_nodes(bill: _Bill, change: Demand, after: Sequence[BilledDay]) -> Outcome:
    """Return what certain nodes saved that went. Others that went as well are not booked."""
    worth = fmean(day.cost(bill.held) for day in after)
    removed = fmean(bill.removed.values())
    if change.fell > STEADY and change.fell * worth >= EXPLAINS * removed:
        return Indistinct(
            f"pods request {change.fell:.1%} less than before: an autoscaler may have removed as much for that"
        )
    if bill.others < _CENT:
        return Realised(bill.removed)
    if change.grew > STEADY and change.grew * worth >= EXPLAINS * bill.others:
        return Realised(bill.removed)  # a scale-up: more requests take more nodes
    if change.grew <= STEADY:
        return Realised(bill.fell)  # other nodes came in their place, for the same pods
    return Indistinct(
        f"other nodes came that cost ${bill.others:,.2f} a day, and pods request only {change.grew:.1%} more "
        "than before"
    )


def _of_other_nodes(bill: _Bill, change: Demand, before: Sequence[BilledDay]) -> Outcome:
    """Return what was saved where nothing says which nodes the advice changes."""
    if max(change.grew, change.fell) > STEADY:
        which = "more" if change.grew >= change.fell else "less"
        return Indistinct(
            f"pods request {max(change.grew, change.fell):.1%} {which} than before, beside what was advised"
        )
    day = before[-1]
    costs = [day.cost({i: each.holdings.get(i, 0.0) for i in bill.held}) for each in before]
    spread = max(costs) - min(costs)
    if spread > max(_CENT, abs(fmean(bill.fell.values()))):
        return Indistinct(
            f"the cost of the nodes differed by ${spread:,.2f} from day to day before it, more than after it"
        )
    return Realised(bill.fell)


def demand(
    changes: Sequence[Change], before: Sequence[BilledDay], after: Sequence[BilledDay]
) -> Demand:
    """Return by which share requests changed, of the resource that changed more in either direction."""
    cpu = _share(
        fmean(d.cpu_m for d in before),
        fmean(d.cpu_m for d in after) + sum(each.frees.cpu_m for each in changes),
    )
    memory = _share(
        fmean(d.memory for d in before),
        fmean(d.memory for d in after) + sum(each.frees.memory for each in changes),
    )
    return Demand(grew=max(cpu, memory, 0.0), fell=max(-cpu, -memory, 0.0))


def _share(before: float, after: float) -> float:
    if before <= 0:
        return 1.0 if after > 0 else 0.0
    return after / before - 1


def _without_price(held: Holdings, gone: Holdings, after: Sequence[BilledDay]) -> Indistinct | None:
    """Return that something which changed has no price; None: all of it has."""
    for day in after:
        kinds = frozenset(kind for kind, _ in {**held, **gone})
        moved = {
            i: n for i, n in difference(held, only(kinds, day.holdings)).items() if abs(n) > _CENT
        }
        name = day.unpriced({**moved, **gone})
        if name is not None:
            return Indistinct(f"no price of {name} is known on {day.day}")
    return None
