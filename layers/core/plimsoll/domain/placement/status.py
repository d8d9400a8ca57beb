"""Where a workload with an on-demand floor stands, and what its pod template lacks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plimsoll.domain.kubernetes import CAPACITY_LABELS, Scheduling, Workload, capacity_of
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement.injection import spread_keys
from plimsoll.domain.placement.on_demand import FloorConstraint, OnDemandFloor
from plimsoll.domain.placement.spread_groups import (
    ON_DEMAND,
    SINGLE_REPLICA,
    SPOT,
    label_key,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorStatus:
    """Where one workload with a floor stands now, against what its floor asks for."""

    floor: OnDemandFloor
    ready: Mapping[str, int]
    """Serving pods by where they stand: `on-demand`, `spot`, or `unknown` for unlabelled nodes."""
    pending: int
    reserved: bool
    """Whether it is a single replica, and the on-demand reserve can take it from spot."""
    lacks: str | None
    """What its pod template lacks, in words; None when the constraint is there."""

    @property
    def met(self) -> bool:
        """Whether the floor stands now."""
        there = self.ready.get(ON_DEMAND, 0) + (self.ready.get(SPOT, 0) if self.reserved else 0)
        return there >= self.floor.keep


def status_of(  # noqa: PLR0913 - what the plan found, each part named
    seen: Observation,
    workload: Workload,
    floor: OnDemandFloor,
    *,
    pending: int,
    reserved: bool,
    lacks: str | None,
) -> FloorStatus:
    """Return where a workload stands, of which so many pods are Pending."""
    return FloorStatus(
        floor=floor,
        ready=dict(seen.serving_by_capacity.get(workload.ref, ())),
        pending=pending,
        reserved=reserved and floor.layout == SINGLE_REPLICA,
        lacks=lacks,
    )


def lacks(workload: Workload, floor: OnDemandFloor) -> str | None:
    """Return what the pod template of a workload lacks for its floor, in words; None where nothing."""
    if _on_demand_only(workload.scheduling):
        return None
    if floor.way is FloorConstraint.SPREAD:
        there = spread_keys(workload.scheduling)
        if not there:
            return f"a spread constraint over {label_key(floor.layout)}"
        if all(layout.floor(floor.replicas) < floor.keep for layout in there):
            return f"a spread constraint over {label_key(floor.layout)} instead of {label_key(there[0])}"
    elif floor.way is FloorConstraint.AFFINITY:
        return "node affinity to on-demand nodes"
    return None


def _on_demand_only(scheduling: Scheduling) -> bool:
    """Whether node selector or affinity lets the pods of a template run on on-demand nodes only."""
    if any(_says_on_demand(key, (value,)) for key, value in scheduling.node_selector.items()):
        return True
    return bool(scheduling.node_terms) and all(
        any(e.operator == "In" and _says_on_demand(e.key, e.values) for e in term.expressions)
        for term in scheduling.node_terms or ()
    )


def _says_on_demand(key: str, values: Sequence[str]) -> bool:
    return key in CAPACITY_LABELS and {capacity_of({key: v}) for v in values} == {ON_DEMAND}
