"""The figures of a drill, rounded as they are reported and judged.

Seconds are given to the millisecond, node hours and the cost ratio to a ten-thousandth. Expectations
are held against these rounded figures, so that what is shown is what was judged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from plimsoll_simulation.measure.node_metrics import GroupMetrics, NodeMetrics
from plimsoll_simulation.measure.workload_metrics import WorkloadMetrics


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFigures:
    """One row of `workloads`; the fields are those of the report, in its order."""

    cluster: str
    namespace: str
    kind: str
    name: str
    replicas: int
    ready_floor: int
    min_ready: int
    seconds_below_floor: float
    seconds_below_quorum: float
    seconds_below_replicas: float
    ready_replica_seconds_lost: float
    seconds_at_zero: float
    pods_killed: int
    pods_cut_short: int
    pods_evicted: int
    replaced_first: int
    min_ready_on_demand: int
    """The fewest Ready pods on on-demand nodes at any moment."""
    ready_on_spot: int
    """Ready pods on spot nodes when the drill ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFigures:
    """One row of `nodes`; times are seconds from time 0."""

    cluster: str
    name: str
    instance: str
    group: str
    zone: str
    notice: str
    noticed: float | None
    cordoned: float | None
    empty: float | None
    gone: float | None
    pods_killed: int
    pods_cut_short: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFigures:
    """One row of `capacity`: what a node group had between time 0 and the end."""

    cluster: str
    group: str
    capacity: str
    first_asked: float | None
    nodes_added: int
    peak: int
    node_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The sums over all workloads, and the spread over all nodes that got a notice."""

    pods_killed: int
    pods_cut_short: int
    workloads_at_zero: int
    seconds_at_zero: float
    seconds_below_floor: float
    seconds_below_quorum: float
    seconds_below_replicas: float
    ready_replica_seconds_lost: float
    nodes_noticed: int
    nodes_cordoned: int
    cordon_after_p50: float | None
    cordon_after_p99: float | None
    empty_after_p50: float | None
    empty_after_p99: float | None
    cost_vs_all_on_demand: float | None
    """1.0: no spot at all; None: no node ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """All figures of one drill."""

    seconds: float
    settled: bool
    workloads: tuple[WorkloadFigures, ...]
    nodes: tuple[NodeFigures, ...]
    with_deadline: Mapping[str, float]
    """Instance with a deadline -> when the notice that set it was sent."""
    capacity: tuple[GroupFigures, ...]
    totals: Totals


def percentile(values: Iterable[float], share: float) -> float | None:
    """Return a percentile by nearest rank: always a value that was measured; None of nothing."""
    ordered = sorted(values)
    if not ordered:
        return None
    return ordered[max(1, math.ceil(round(share * len(ordered), 9))) - 1]


def figures(  # noqa: PLR0913 - all that was measured
    lasted: timedelta,
    *,
    settled: bool,
    zero: datetime,
    end: datetime,
    workload_metrics: Iterable[WorkloadMetrics],
    nodes: Iterable[NodeMetrics],
    groups: Iterable[GroupMetrics],
    spot_price: float,
) -> Figures:
    """Return the figures of the accounts, which must be up to date."""
    held = list(groups)
    clusters = list(dict.fromkeys(group.cluster for group in held))

    def order(cluster: str) -> int:
        return clusters.index(cluster) if cluster in clusters else len(clusters)

    counted = sorted(workload_metrics, key=lambda metrics: (order(metrics.id[0]), metrics.id))
    rows = tuple(_workload(metrics) for metrics in counted)
    listed = sorted(
        (node for node in nodes if node.listed),
        key=lambda node: (order(node.cluster), node.noticed or node.gone or end, node.name),
    )
    return Figures(
        seconds=_seconds(lasted),
        settled=settled,
        workloads=rows,
        nodes=tuple(_node(node, zero) for node in listed),
        with_deadline={
            n.instance: told for n in listed if (told := _since(zero, n.told)) is not None
        },
        capacity=tuple(_group(group, zero, end) for group in held),
        totals=_totals(counted, rows, listed, cost=_cost(held, end, spot_price)),
    )


def _seconds(duration: timedelta) -> float:
    return round(duration / timedelta(seconds=1), 3)


def _since(zero: datetime, moment: datetime | None) -> float | None:
    return None if moment is None else max(0.0, _seconds(moment - zero))


def _workload(metrics: WorkloadMetrics) -> WorkloadFigures:
    cluster, namespace, kind, name = metrics.id
    return WorkloadFigures(
        cluster=cluster,
        namespace=namespace,
        kind=kind,
        name=name,
        replicas=metrics.replicas,
        ready_floor=metrics.floor,
        min_ready=metrics.min_ready or 0,
        seconds_below_floor=_seconds(metrics.below_floor),
        seconds_below_quorum=_seconds(metrics.below_quorum),
        seconds_below_replicas=_seconds(metrics.below_replicas),
        ready_replica_seconds_lost=_seconds(metrics.lost),
        seconds_at_zero=_seconds(metrics.at_zero),
        pods_killed=metrics.killed,
        pods_cut_short=metrics.cut_short,
        pods_evicted=metrics.evicted,
        replaced_first=metrics.replaced_first,
        min_ready_on_demand=metrics.min_ready_on_demand or 0,
        ready_on_spot=metrics.ready_on_spot,
    )


def _node(node: NodeMetrics, zero: datetime) -> NodeFigures:
    return NodeFigures(
        cluster=node.cluster,
        name=node.name,
        instance=node.instance,
        group=node.group,
        zone=node.zone,
        notice=node.kind or "none",
        noticed=_since(zero, node.noticed),
        cordoned=_since(zero, node.cordoned),
        empty=_since(zero, node.empty),
        gone=_since(zero, node.gone),
        pods_killed=node.killed,
        pods_cut_short=node.cut_short,
    )


def _group(group: GroupMetrics, zero: datetime, end: datetime) -> GroupFigures:
    return GroupFigures(
        cluster=group.cluster,
        group=group.group,
        capacity=group.capacity,
        first_asked=_since(zero, group.first_asked),
        nodes_added=group.added,
        peak=group.peak,
        node_hours=round(group.hours(end), 4),
    )


def _cost(groups: Sequence[GroupMetrics], end: datetime, spot_price: float) -> float | None:
    hours = [(group, group.hours(end) * group.price) for group in groups]
    on_demand = math.fsum(cost for _, cost in hours)
    if not on_demand:
        return None
    paid = math.fsum(
        cost * (spot_price if group.capacity == "spot" else 1.0) for group, cost in hours
    )
    return round(paid / on_demand, 4)


def _totals(
    workload_metrics: Sequence[WorkloadMetrics],
    rows: Sequence[WorkloadFigures],
    nodes: Sequence[NodeMetrics],
    *,
    cost: float | None,
) -> Totals:
    noticed = [node for node in nodes if node.noticed is not None]
    cordons = [_after(node.noticed, node.cordoned) for node in noticed if node.cordoned]
    empties = [_after(node.noticed, node.empty) for node in noticed if node.empty]
    return Totals(
        pods_killed=sum(row.pods_killed for row in rows),
        pods_cut_short=sum(row.pods_cut_short for row in rows),
        workloads_at_zero=sum(
            bool(metrics.at_zero) and metrics.twice for metrics in workload_metrics
        ),
        seconds_at_zero=_sum(row.seconds_at_zero for row in rows),
        seconds_below_floor=_sum(row.seconds_below_floor for row in rows),
        seconds_below_quorum=_sum(row.seconds_below_quorum for row in rows),
        seconds_below_replicas=_sum(row.seconds_below_replicas for row in rows),
        ready_replica_seconds_lost=_sum(row.ready_replica_seconds_lost for row in rows),
        nodes_noticed=len(noticed),
        nodes_cordoned=len(cordons),
        cordon_after_p50=percentile(cordons, 0.5),
        cordon_after_p99=percentile(cordons, 0.99),
        empty_after_p50=percentile(empties, 0.5),
        empty_after_p99=percentile(empties, 0.99),
        cost_vs_all_on_demand=cost,
    )


def _sum(values: Iterable[float]) -> float:
    return round(math.fsum(values), 3)


def _after(noticed: datetime | None, moment: datetime | None) -> float:
    """Return the seconds from a notice; what was done before it took none."""
    if noticed is None or moment is None:
        return 0.0
    return max(0.0, _seconds(moment - noticed))
