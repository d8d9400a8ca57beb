"""On-demand floors: how many replicas of a workload must stand on on-demand nodes, and how they do.

A topology spread over `k + m` groups of nodes, `k` of them on-demand, keeps at least `N // (k + m)`
of N replicas on each, with `maxSkew: 1`. Of the layouts that keep a floor so, the first of
`FLOOR_LAYOUTS` puts the most replicas on spot.
https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from typing import Final

from plimsoll.domain.capacity import StartWindow, StartWindows
from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import (
    AUTO_FLOOR,
    CAPACITY_LABELS,
    DELETION_COST,
    KUBE_SYSTEM,
    MIN_ON_DEMAND,
    MOST_NAMED,
    ClusterEvent,
    Node,
    OwnerKind,
    Pod,
    Ref,
    Workload,
    about_workload,
    resolve_count,
)
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement.spread_groups import NO_GROUPS, ON_DEMAND, SINGLE_REPLICA, Layout

FLOOR_LAYOUTS: Final = (*(Layout(1, spot) for spot in (3, 2, 1)), Layout(2, 1), Layout(3, 1))
"""Over more than three spot groups there is little to gain: with three of them a quarter stands on on-demand."""
_VOLUME_LAYOUTS: Final = (Layout(1, 1),)
"""More groups leave fewer nodes of each in the zone of a volume."""
COST: Final = "1000"
"""The deletion cost of pods that hold a floor. Any other value on a pod is its owner's, and stays."""
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_MOST_LOOKED_UP: Final = 500
_KINDS: Final = frozenset({OwnerKind.DEPLOYMENT, OwnerKind.STATEFUL_SET})


class FloorConstraint(StrEnum):
    """How a floor is kept."""

    FREE = "free"
    """There is no floor: the pods need no constraint."""
    SPREAD = "spread"
    """A topology spread constraint over on-demand and the spot groups."""
    AFFINITY = "affinity"
    """Node affinity: every replica stands on on-demand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDemandFloor:
    """What a workload's floor asks of its pods."""

    workload: Ref
    replicas: int
    """What the arithmetic counts with: the autoscaler's minimum, else the declared count."""
    asked: int
    """How many its owner asked for."""
    keep: int
    """How many replicas must stand on on-demand: at most `replicas`."""
    way: FloorConstraint
    layout: Layout
    """Over which groups SPREAD spreads the replicas; of a single replica see `reserve`."""
    reason: str
    auto: bool = False
    """Its owner leaves the number to Plimsoll."""


def floor_of(
    workload: Workload,
    *,
    namespaces: Mapping[str, str] | None = None,
    default: str = "0",
    late: Callable[[Ref], StartWindow | None] = lambda _: None,
    volumes_on_both: Callable[[Workload], bool] = lambda _: False,
) -> OnDemandFloor:
    """Return the on-demand floor of a workload.

    Args:
        workload: only Deployments and StatefulSets have a floor.
        namespaces: namespace -> what its annotation says, for workloads without one.
        default: the cluster's, for namespaces without one, but not for kube-system.
        late: tells of a workload when a replacement is Ready, where that is later than the pod that it
            replaces stops; asked only where the owner leaves the number to Plimsoll.
        volumes_on_both: tells of a workload with volumes whether on-demand and spot have nodes in every zone of them.

    Raises:
        BadInput: what the owner wrote is neither a number of pods nor a percentage.
    """
    ref = workload.ref
    said = stated_floor(workload, namespaces, default)
    replicas = workload.replicas if workload.min_replicas is None else workload.min_replicas
    auto = said == AUTO_FLOOR
    window = late(ref) if auto else None
    try:
        asked = (
            _even_share(replicas, late=window is not None)
            if auto
            else resolve_count(
                int(said) if _NUMBER.fullmatch(said) else said, replicas, round_up=True
            )
        )
    except BadInput as error:
        raise BadInput(f"{ref}: the annotation {MIN_ON_DEMAND}: {error}") from error
    keep = min(asked, replicas) if ref.kind in _KINDS else 0

    def floor(way: FloorConstraint, reason: str, layout: Layout = NO_GROUPS) -> OnDemandFloor:
        return OnDemandFloor(
            workload=ref,
            replicas=replicas,
            asked=asked,
            keep=keep,
            way=way,
            layout=layout,
            reason=reason if window is None else f"{window.says}: {reason}",
            auto=auto,
        )

    if keep < 1:
        return floor(FloorConstraint.FREE, "it asks for no replica on on-demand")
    volumes = bool(workload.scheduling.claims) or workload.claim_templates
    if replicas == asked == 1 and said not in {"100%", AUTO_FLOOR} and not volumes:
        return floor(
            FloorConstraint.SPREAD,
            "a single replica may stand on spot while on-demand can take it",
            SINGLE_REPLICA,
        )
    if asked > replicas:
        why = f"it asks for {asked} on on-demand and has {replicas} replicas"
    elif keep == replicas:
        why = f"all {replicas} replicas must stand on on-demand"
    elif volumes and not volumes_on_both(workload):
        why = "its volumes are in zones where on-demand or spot may have no node"
    else:
        layouts = _VOLUME_LAYOUTS if volumes else FLOOR_LAYOUTS
        for layout in layouts:
            if layout.floor(replicas) >= keep:
                return floor(FloorConstraint.SPREAD, _even(layout, replicas, keep), layout)
        why = f"no even spread leaves {keep} of {replicas} replicas on on-demand"
    return floor(FloorConstraint.AFFINITY, why)


def _even(layout: Layout, replicas: int, keep: int) -> str:
    groups = layout.on_demand_groups + layout.spot_groups
    on_demand = f", {layout.on_demand_groups} of them on-demand," * (layout.on_demand_groups > 1)
    return (
        f"{replicas} replicas over {groups} groups{on_demand} leave at least {layout.floor(replicas)} "
        f"on on-demand, and {keep} are asked for"
    )


def stated_floor(
    workload: Workload, namespaces: Mapping[str, str] | None = None, default: str = "0"
) -> str:
    """Return what is asked for a workload: by itself, else by its namespace, else by its cluster; see `floor_of`."""
    default = "0" if workload.ref.namespace == KUBE_SYSTEM else default
    of_namespace = (namespaces or {}).get(workload.ref.namespace, default)
    return workload.annotations.get(MIN_ON_DEMAND) or of_namespace


def floors_by_stop_time(windows: StartWindows, namespaces: Mapping[str, str]) -> Sequence[Ref]:
    """Return the workloads that have a floor only if their pods need as long to stop as is assumed.

    A bounded number: each is looked up. Of the others the assumption holds.
    """
    seen = windows.seen
    asking = (
        workload.ref
        for workload in sorted(seen.workloads, key=lambda w: w.ref)
        if stated_floor(workload, namespaces, seen.policy.min_on_demand) == AUTO_FLOOR
        and (window := windows.late(workload.ref)) is not None
        and not replace(window, stop_seconds=0).missing
    )
    return [*islice(asking, _MOST_LOOKED_UP)]


def _even_share(replicas: int, *, late: bool) -> int:
    """Return the floor by which no spot group has more than one pod more than on-demand: spread over the most groups.

    A group holds whole instance families, or zones of them, so on-demand covers the loss of any spot pool, but for
    that one pod.
    """
    return max(1, FLOOR_LAYOUTS[0].floor(replicas)) if late else 0


def deletion_costs(
    seen: Observation, floor: OnDemandFloor
) -> Iterator[tuple[Pod, str | None, str]]:
    """Yield the pods whose deletion cost is to change, its new value (None: none), and why.

    Scale-in of a ReplicaSet knows no topology spread: of larger on-demand nodes it may empty all. It takes pods
    with a lower deletion cost first, so those on on-demand carry a higher one. StatefulSets drop the highest
    ordinal, whatever it costs.
    https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#pod-deletion-cost
    """
    if floor.workload.kind != OwnerKind.DEPLOYMENT:
        return
    capacities = seen.capacities if floor.layout.spot_groups else {}
    must_not = f"scale-in of {floor.workload} must not take its on-demand floor"
    no_longer = f"it no longer holds an on-demand floor of {floor.workload}"
    for pod in seen.of_workload.get(floor.workload, ()):
        holds = capacities.get(pod.node) == ON_DEMAND
        cost = pod.annotations.get(DELETION_COST)
        if cost != (None if holds else COST):  # as it should be, or its owner's
            continue
        if pod.node is None or pod.deleting is not None or pod.released:
            continue
        if holds:
            yield pod, COST, must_not
        else:
            yield pod, None, no_longer


def problems_of(
    nodes: Sequence[Node], floors: Sequence[tuple[Workload, OnDemandFloor]]
) -> Iterator[ClusterEvent]:
    """Yield what its owner can change: floors that cannot stand, nodes whose pods count for none; a few of each."""
    asking = [pair for pair in floors if pair[1].way is not FloorConstraint.FREE]
    if not asking:
        return
    above = [(workload, floor) for workload, floor in asking if floor.asked > floor.replicas]
    for workload, floor in above:
        yield about_workload(workload, "FloorAboveReplicas", f"{workload.ref}: {floor.reason}")
    unknown = [node for node in nodes if node.capacity is None and node.staying]
    for node in unknown[:MOST_NAMED]:
        yield ClusterEvent(
            about=Ref("Node", "", node.name),
            uid=node.name,
            reason="CapacityUnknown",
            message=f"Node {node.name}: its pods count for no floor, since no label says whether it "
            f"is on-demand or spot; {len(unknown) - 1} other nodes say neither. Set "
            f"{CAPACITY_LABELS[0]}",
            warning=True,
        )
    if not any(node.capacity == ON_DEMAND and node.staying for node in nodes):
        for workload, floor in asking[:MOST_NAMED]:
            yield about_workload(
                workload,
                "NoOnDemandNode",
                f"{workload.ref}: {floor.keep} of its replicas must stand on on-demand, and no "
                "on-demand node takes pods",
            )
