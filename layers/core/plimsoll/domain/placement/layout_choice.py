"""Which layout a promised workload has: its load line, changed seldom.

Rates and start-up times change by the hour, and each change of layout moves pods. So a layout stays until it was above
twice what the promise allows for a day, or a cheaper one was below half of it for a week, and for a week after a change.
The first choice is no change: a promise that is new counts at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.placement.load_line import NO_FLOOR, LoadLine
from plimsoll.domain.placement.promises import Promise, PromisedWorkload
from plimsoll.domain.placement.spread_groups import Layout

UP_FACTOR: Final = 2.0
"""A layout is too risky above so many times what the promise allows,"""
UP_AFTER: Final = timedelta(days=1)
"""and is changed after so long."""
DOWN_FACTOR: Final = 0.5
"""A cheaper layout is safe below so many times what the promise allows,"""
DOWN_AFTER: Final = timedelta(days=7)
"""and is taken after so long."""
STANDS_FOR: Final = timedelta(days=7)
"""How long a layout stands after a change, whatever the rates are."""
LAYOUTS_KEPT: Final = timedelta(days=28)
"""How long a chosen layout is remembered."""
WRITTEN_AGAIN_AFTER: Final = timedelta(days=7)
"""So that it is remembered for as long as it stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenLayout:
    """The layout that was chosen for a workload, and since when another is better."""

    promise: Promise
    """It was chosen for this one."""
    layout: Layout
    changed: datetime | None = None
    """When it was changed last; None where the first choice stands."""
    above: datetime | None = None
    """Since when it is too risky."""
    below: datetime | None = None
    """Since when the next cheaper layout is safe."""
    at: datetime
    """When this was written."""

    def is_due(self, before: ChosenLayout | None) -> bool:
        """Whether it is to be written where this stands."""
        if before is None or self.at - before.at >= WRITTEN_AGAIN_AFTER:
            return True
        return replace(self, at=before.at) != before


def choose_layout(
    promised: PromisedWorkload,
    before: ChosenLayout | None,
    there: Layout | None,
    now: datetime,
) -> ChosenLayout | None:
    """Return the layout of a workload from now on; None: none can be chosen yet.

    The same observation leads to the same layout, also where it is seen twice, and one that comes late changes nothing.

    Args:
        promised: what each layout keeps now.
        before: what was chosen last.
        there: the layout that its objects tell, where nothing is remembered and its floor does not explain it.
        now: the time of the observation.
    """
    late = before is not None and now < before.at
    if late or not promised.spot or promised.wanted > promised.replicas:
        return before
    line, promise = _named(promised.line.layout), promised.promise
    if before is None and there is not None:
        before = ChosenLayout(promise=promise, layout=there, at=now)
    if before is None:
        return ChosenLayout(promise=promise, layout=line, at=now)
    stands = promised.keeps(before.layout)
    if before.promise != promise or not promised.keeps_hard_floor(
        before.layout
    ):  # its owner changed what is asked
        return _changed(before, line, promise, now)
    lower = _next_cheaper(promised, stands)
    above = (before.above or now) if stands.below > UP_FACTOR * promise.broken else None
    safe = lower is not None and lower.below < DOWN_FACTOR * promise.broken
    below = (before.below or now) if safe else None
    free = before.changed is None or now - before.changed >= STANDS_FOR
    if free and above is not None and now - above >= UP_AFTER:
        return _changed(before, line, promise, now)
    if free and lower is not None and below is not None and now - below >= DOWN_AFTER:
        return _changed(before, _named(lower.layout), promise, now)
    return replace(before, above=above, below=below, at=now)


def _named(layout: Layout) -> Layout:
    """Return a layout as it is remembered: without a constraint it does not matter how many groups there are."""
    return layout if layout.on_demand_groups else NO_FLOOR


def _next_cheaper(promised: PromisedWorkload, stands: LoadLine) -> LoadLine | None:
    """Return the costliest layout that costs less than one and keeps the hard floor."""
    cheaper = [
        each
        for each in promised.layouts
        if each.cost < stands.cost and promised.keeps_hard_floor(each.layout)
    ]
    return max(cheaper, key=lambda each: each.cost, default=None)


def _changed(before: ChosenLayout, layout: Layout, promise: Promise, now: datetime) -> ChosenLayout:
    changed = before.changed if layout == before.layout else now
    return ChosenLayout(promise=promise, layout=layout, changed=changed, at=now)
