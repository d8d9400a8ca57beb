"""What one interruption cost, and why each step was taken.

A report grows over many reconciles of work, some of which die half-way or run twice. So it is merged,
never replaced: first times win, reasons are folded, counts only grow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal, Self

from plimsoll.domain.reports.reasons import Reason, merge_reasons

PLACEMENT: Final = "placement"
"""The kind of the reports of placement, and the first part of their ids."""
SCALE_UP: Final = "scale-up"
"""The kind of the reports of nodes that were added while no node was interrupted, and the first part of their ids."""
type Outcome = Literal["killed", "below floor", "past a budget", "unhurt", "under way"]
_LEVELS: Final = 8
"""How many numbers of ready replicas a report remembers of a workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One interruption: notice, cordon, capacity, replacements, empty, gone."""

    interruption: str
    """`<instance>@<launch time>`."""
    cluster: str
    node: str
    kind: str
    noticed: datetime
    deadline: datetime | None = None
    cordoned: datetime | None = None
    capacity_asked: datetime | None = None
    replaced: datetime | None = None
    """When everything that stood there and can run twice was first Ready elsewhere in full."""
    emptied: datetime | None = None
    gone: datetime | None = None
    closed: datetime | None = None
    lowest_ready: Mapping[str, int] = field(default_factory=dict)
    """Workload -> the fewest ready replicas seen while this node was drained."""
    fell: Mapping[str, Mapping[int, datetime]] = field(default_factory=dict)
    """Workload -> ready replicas, where these are fewer than it declares -> when there were first so few. Of each
    workload the lowest numbers are kept."""
    below_floor: Mapping[str, int] = field(default_factory=dict)
    """Workload -> by how many ready replicas it once missed its ready floor."""
    overruled: Mapping[str, str] = field(default_factory=dict)
    """Pod that was deleted past its PodDisruptionBudget -> how that had refused its eviction."""
    killed: tuple[str, ...] = ()
    """Pods that were still there when the instance was gone."""
    added: Mapping[str, int] = field(default_factory=dict)
    """Node group and time -> how many nodes were asked of it; less than zero where one was taken back."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Node group and kind of refusal -> why it got no nodes, and what cures that, in words."""
    reasons: tuple[Reason, ...] = ()
    """Folded, in the order in which they were first told."""

    @property
    def outcome(self) -> Outcome:
        """The worst that it came to, so far."""
        if self.killed:
            return "killed"
        if self.below_floor:
            return "below floor"
        if self.overruled:
            return "past a budget"
        return "unhurt" if self.emptied or self.closed else "under way"

    def below(self, workload: str, wanted: int) -> datetime | None:
        """Return when a workload had fewer Ready replicas than so many for the first time; None: it never had."""
        times = [at for ready, at in self.fell.get(workload, {}).items() if ready < wanted]
        return min(times, default=None)

    def merged(self, other: Report) -> Self:
        """Return both reports as one; the order of merging does not matter but for the order of the reasons."""
        lowest = dict(self.lowest_ready)
        for workload, ready in other.lowest_ready.items():
            lowest[workload] = min(ready, lowest.get(workload, ready))
        below = dict(self.below_floor)
        for workload, short in other.below_floor.items():
            below[workload] = max(short, below.get(workload, short))
        return replace(
            self,
            noticed=min(self.noticed, other.noticed),
            deadline=_first(self.deadline, other.deadline),
            cordoned=_first(self.cordoned, other.cordoned),
            capacity_asked=_first(self.capacity_asked, other.capacity_asked),
            replaced=_first(self.replaced, other.replaced),
            emptied=_first(self.emptied, other.emptied),
            gone=_first(self.gone, other.gone),
            closed=_first(self.closed, other.closed),
            lowest_ready=dict(sorted(lowest.items())),
            fell=_fell(self.fell, other.fell),
            below_floor=dict(sorted(below.items())),
            overruled={**self.overruled, **other.overruled},
            added={**self.added, **other.added},
            refused={**self.refused, **other.refused},
            killed=tuple(sorted({*self.killed, *other.killed})),
            reasons=merge_reasons(self.reasons, other.reasons),
        )


def _fell(
    mine: Mapping[str, Mapping[int, datetime]], other: Mapping[str, Mapping[int, datetime]]
) -> Mapping[str, Mapping[int, datetime]]:
    found = {}
    for workload in sorted(mine.keys() | other.keys()):
        here, there = mine.get(workload, {}), other.get(workload, {})
        lowest = sorted(here.keys() | there.keys())[:_LEVELS]
        found[workload] = {
            ready: min(each[ready] for each in (here, there) if ready in each) for ready in lowest
        }
    return found


def _first(mine: datetime | None, other: datetime | None) -> datetime | None:
    if mine is None or other is None:
        return mine or other
    return min(mine, other)
