"""How much of a workload may stand on spot."""

from __future__ import annotations

from typing import Final

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import MIN_ON_DEMAND
from plimsoll.domain.placement import Way, floor_of
from plimsoll_service.domain.analysis.cluster_view import View, workload_for_floor
from plimsoll_service.wire import snapshot as wire

SPOT: Final = "spot"
ON_DEMAND: Final = "on-demand"


def stands_on_spot(view: View, workload: wire.Workload) -> int:
    """Return how many of its pods stand on spot."""
    nodes = (view.nodes.get(pod.node) for pod in view.of_workload.get(workload.uid, ()))
    return sum(node is not None and node.capacity == SPOT for node in nodes)


def may_stand_on_spot(view: View, workload: wire.Workload) -> int:
    """Return how many replicas its owner lets stand on spot.

    Without a stated floor: as many as do now. Nobody has said that others may be interrupted.
    """
    if MIN_ON_DEMAND not in workload.annotations:
        return stands_on_spot(view, workload)
    scaler = view.scalers.get(workload.uid)
    least = scaler.min_replicas if scaler else None
    try:
        floor = floor_of(workload_for_floor(workload, least))
    except BadInput:
        return 0
    match floor.way:
        case Way.FREE:
            return workload.replicas
        case Way.SPREAD if floor.spot_groups:
            return workload.replicas - workload.replicas // (floor.spot_groups + 1)
        case Way.SPREAD | Way.AFFINITY:
            return 0
