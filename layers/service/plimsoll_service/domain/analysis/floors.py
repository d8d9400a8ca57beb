"""What owners ask of on-demand nodes and of Ready replicas, against where the pods of a snapshot stand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from plimsoll.domain.capacity import StartWindow
from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import MIN_ON_DEMAND, Ref, Scheduling, Selector, Workload
from plimsoll.domain.placement import (
    SINGLE_REPLICA,
    FloorConstraint,
    OnDemandFloor,
    floor_of,
    understood_promise,
)
from plimsoll_service.domain.analysis.cluster_view import (
    ON_DEMAND,
    OWNER,
    View,
    amounts,
    stands_on_spot,
)
from plimsoll_service.wire import snapshot as wire

_PERHAPS: Final = StartWindow(start_seconds=0, node_seconds=0, stop_seconds=0)
"""A snapshot does not tell how long pods take to start: the floor `auto` counts as if it were long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How many workloads of a cluster have what their owners ask for."""

    floors: int
    """Workloads with an on-demand floor."""
    floors_missed: int
    lines: int
    """Deployments of which a number of Ready replicas is promised."""
    lines_broken: int


def standing_of(view: View) -> Standing:
    """Count the floors and promises that owners state, and those that do not stand now.

    What an owner wrote and nobody understands counts as not stated.
    """
    floors, lines = list(_floors_met(view)), list(_lines_kept(view))
    return Standing(
        floors=len(floors),
        floors_missed=floors.count(False),
        lines=len(lines),
        lines_broken=lines.count(False),
    )


def may_stand_on_spot(view: View, workload: wire.Workload) -> int:
    """Return how many replicas its owner lets stand on spot.

    Without a stated floor: as many as do now. Nobody has said that others may be interrupted.
    """
    if MIN_ON_DEMAND not in workload.annotations:
        return stands_on_spot(view, workload)
    try:
        floor = _floor(view, workload)
    except BadInput:
        return 0
    match floor.way:
        case FloorConstraint.FREE:
            return workload.replicas
        case FloorConstraint.SPREAD if floor.layout.spot_groups:
            return workload.replicas - floor.layout.floor(workload.replicas)
        case FloorConstraint.SPREAD | FloorConstraint.AFFINITY:
            return 0


def _floors_met(view: View) -> Iterator[bool]:
    for workload in view.workloads.values():
        if MIN_ON_DEMAND not in workload.annotations:
            continue
        try:
            floor = _floor(view, workload)
        except BadInput:
            continue
        if floor.way is not FloorConstraint.FREE:
            # A single replica may stand on spot while the reserve can take it, of which no snapshot tells.
            anywhere = floor.layout == SINGLE_REPLICA
            yield _ready(view, workload, anywhere=anywhere) >= floor.keep


def _lines_kept(view: View) -> Iterator[bool]:
    for workload in view.workloads.values():
        promise = understood_promise(_read(view, workload), {}, "0")
        if promise is not None:
            yield workload.ready >= promise.wanted(workload.replicas)


def _ready(view: View, workload: wire.Workload, *, anywhere: bool) -> int:
    return sum(
        pod.ready
        and not pod.deleting
        and (node := view.nodes.get(pod.node)) is not None
        and (anywhere or node.capacity == ON_DEMAND)
        for pod in view.of_workload.get(workload.uid, ())
    )


def _floor(view: View, workload: wire.Workload) -> OnDemandFloor:
    return floor_of(_read(view, workload), late=lambda _: _PERHAPS)


def _read(view: View, workload: wire.Workload) -> Workload:
    """Return as much of a workload as the arithmetic of floors and promises reads."""
    scaler = view.scalers.get(workload.uid)
    return Workload(
        ref=Ref(workload.kind, workload.namespace, workload.name),
        uid=workload.uid,
        resource_version="",
        annotations=workload.annotations,
        selector=Selector(labels={OWNER: workload.uid}),
        replicas=workload.replicas,
        scheduling=Scheduling(requests=amounts(workload.requests, pods=1)),
        min_replicas=scaler.min_replicas if scaler else None,
        claim_templates=workload.claim_templates,
    )
