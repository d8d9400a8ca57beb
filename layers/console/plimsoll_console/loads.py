"""How much of each workload stands on spot, and what stays Ready of it if that goes: pure, of one observation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from plimsoll.domain.kubernetes import Ref
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement import FloorConstraint, Mark, PlacementPlan, marks_of, plan_placement

LOSSES: Mapping[str, str] = {
    "node": "a spot node",
    "family": "a spot family",
    "zone": "a zone's spot",
    "all spot": "all spot",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One workload."""

    ref: Ref
    replicas: int
    ready: int
    spot: int
    """Of the Ready pods, how many stand on spot."""
    line: int | None = None
    """How many of its replicas its owner wants on on-demand: its load line; None where nobody asks for any."""
    reason: str = ""
    lacks: str = ""
    """What its pod template lacks for that."""
    met: bool = True
    marks: tuple[Mark, ...] = ()
    """What stays if the worst node, family, zone or all spot goes, the smallest loss first."""

    @property
    def on_demand(self) -> int:
        """Ready pods that do not stand on spot."""
        return self.ready - self.spot

    @property
    def least(self) -> int:
        """What stays if all spot goes."""
        return self.on_demand

    @property
    def short(self) -> int:
        """How many fewer stay than promised."""
        return max(0, (self.line or 0) - self.least)


def loads_of(
    seen: Observation, now: datetime, namespaces: Mapping[str, str] | None = None
) -> tuple[Load, ...]:
    """Return all workloads, those first of which the least stays.

    Args:
        seen: one observation.
        now: its time.
        namespaces: namespace -> the on-demand floor that its annotation asks for.
    """
    return loads_by(seen, plan_placement(seen, now, namespaces=namespaces))


def loads_by(seen: Observation, plan: PlacementPlan) -> tuple[Load, ...]:
    """Return the same by a plan that was made of the observation."""
    statuses = {status.floor.workload: status for status in plan.workloads}
    marks = {found.workload: found for found in marks_of(seen)}
    found = []
    for workload in seen.workloads:
        if not workload.replicas:
            continue
        mark, status = marks.get(workload.ref), statuses.get(workload.ref)
        asked = status is not None and status.floor.way is not FloorConstraint.FREE
        ready = mark.ready if mark else 0
        found.append(
            Load(
                ref=workload.ref,
                replicas=workload.replicas,
                ready=ready,
                spot=sum(mark.on_spot.values()) if mark else 0,
                line=status.floor.keep if status and asked else None,
                reason=status.floor.reason if status and asked else "",
                lacks=(status.lacks or "") if status else "",
                met=status.met if status and asked else True,
                marks=mark.marks if mark else (),
            )
        )
    return tuple(sorted(found, key=_order))


def _order(load: Load) -> tuple[object, ...]:
    return -load.short, load.least > 0, load.least / load.replicas, -load.replicas, load.ref


def loss_words(mark: Mark) -> str:
    """Return what goes, in words: hostile names are escaped by whoever shows them."""
    return LOSSES[mark.kind] + (f" ({mark.name})" if mark.name and mark.kind != "all spot" else "")
