"""What people see of a cluster, made of one snapshot."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime
from heapq import nlargest
from typing import Final

from plimsoll.domain.kubernetes import INSTANCE_TYPE, INTERRUPTION, ZONE, capacity_of
from plimsoll_service.domain.snapshots.rollups import Amount, Rollup
from plimsoll_service.domain.snapshots.usage import WorkloadUsage, asked_by, sum_of
from plimsoll_service.wire.clusters import SeenColumns
from plimsoll_service.wire.documents import MOST_COUNT
from plimsoll_service.wire.snapshot import Amounts, Snapshot
from plimsoll_service.wire.taints import FORWARDED
from plimsoll_service.wire.views import InterruptedNode, Period, Pool, WorkloadRow

PERCENT: Final = 95
GOING: Final = (
    INTERRUPTION,
    *FORWARDED,
    "aws-node-termination-handler/rebalance-recommendation",
    "karpenter.sh/disrupted",
)
"""Taints that say that a node goes: ours, and those of other handlers."""


def workload_rows(
    snapshot: Snapshot, usage: Mapping[str, WorkloadUsage], *, most: int
) -> tuple[WorkloadRow, ...]:
    """Return the workloads by namespace and name, with what their pods used; of many, those that ask for most."""
    spot = {node.name for node in snapshot.nodes if capacity_of(node.labels) == "spot"}
    on_spot = Counter(p.owner.uid for p in snapshot.pods if p.owner and p.node in spot)
    rows = []
    largest = nlargest(most, snapshot.workloads, key=asked_by)
    for each in sorted(largest, key=lambda w: (w.namespace, w.name, w.kind)):
        its = usage.get(each.uid)
        used = its.at(PERCENT, PERCENT) if its and its.cpu_m.samples else None
        rows.append(
            WorkloadRow(
                kind=each.kind,
                namespace=each.namespace,
                name=each.name,
                replicas=each.replicas,
                ready=each.ready,
                on_spot=on_spot[each.uid],
                requests=each.requests,
                used_cpu_m=used.cpu_m if used else None,
                used_memory=used.memory if used else None,
            )
        )
    return tuple(rows)


def interrupted_nodes(snapshot: Snapshot) -> tuple[InterruptedNode, ...]:
    """Return the nodes that are marked as going, by name."""
    pods = Counter(pod.node for pod in snapshot.pods)
    return tuple(
        InterruptedNode(
            node=node.name,
            provider_id=node.provider_id,
            taint=taint.key,
            reason=taint.value,
            pods=pods[node.name],
        )
        for node in sorted(snapshot.nodes, key=lambda n: n.name)
        for taint in node.taints
        if taint.key in GOING
    )


def seen_columns(snapshot: Snapshot, received_at: datetime) -> SeenColumns:
    """Return what a snapshot tells of its cluster for the list of clusters.

    Args:
        snapshot: whole.
        received_at: when the service received it.
    """
    return SeenColumns(
        taken_at=snapshot.taken_at,
        received_at=received_at,
        nodes=len(snapshot.nodes),
        spot=sum(capacity_of(node.labels) == "spot" for node in snapshot.nodes),
        open_interruptions=len({each.node for each in interrupted_nodes(snapshot)}),
        agent=snapshot.agent,
    )


def period_of(rollup: Rollup) -> Period:
    """Return an hour or a day as people read it."""
    samples = rollup.samples

    def mean(amount: Amount) -> Amounts:
        return Amounts(
            cpu_m=min(amount.cpu_m // samples, MOST_COUNT),
            memory=min(amount.memory // samples, MOST_COUNT),
        )

    return Period(
        start=rollup.start,
        snapshots=samples,
        nodes=rollup.nodes / samples,
        spot_nodes=rollup.spot_nodes / samples,
        pods=rollup.pods / samples,
        pending=rollup.pending / samples,
        allocatable=mean(rollup.allocatable),
        requested=mean(rollup.requested),
        used=mean(rollup.used),
    )


def pool_rows(snapshot: Snapshot) -> tuple[Pool, ...]:
    """Return the capacity pools of the nodes, by type, zone and capacity."""
    asked: dict[str, list[Amounts]] = defaultdict(list)
    for pod in snapshot.pods:
        asked[pod.node].append(pod.requests)
    found = defaultdict(list)
    for node in snapshot.nodes:
        capacity = capacity_of(node.labels) or "unknown"
        key = (node.labels.get(INSTANCE_TYPE, ""), node.labels.get(ZONE, ""), str(capacity))
        found[key].append(node)
    return tuple(
        Pool(
            instance_type=instance_type,
            zone=zone,
            capacity=capacity,
            nodes=len(nodes),
            allocatable=sum_of(node.allocatable for node in nodes),
            requested=sum_of(each for node in nodes for each in asked[node.name]),
        )
        for (instance_type, zone, capacity), nodes in sorted(found.items())
    )
