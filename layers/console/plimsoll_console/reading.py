"""What an observation tells the screens: pure, and loaded by whoever observes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from plimsoll.domain.observation import InterruptedNodes, Observation
from plimsoll.domain.placement import FloorConstraint, PlacementPlan, marks_of, plan_placement
from plimsoll_console.loads import Load
from plimsoll_console.sources import ClusterState


def read(
    state: ClusterState,
    seen: Observation,
    now: datetime,
    namespaces: Mapping[str, str] | None = None,
) -> ClusterState:
    """Return what is known of a cluster after it was read.

    While nodes go, the workloads stay as they stood before: what rides on nodes that go is no choice of anybody.

    Args:
        state: what was known.
        seen: what was read.
        now: when.
        namespaces: namespace -> the on-demand floor that its annotation asks for.
    """
    state = replace(state, at=now, seen=seen, error="")
    if state.loads and InterruptedNodes.of(seen).nodes:
        return state
    return replace(state, loads=loads_of(seen, now, namespaces), loads_at=now)


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
