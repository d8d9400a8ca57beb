"""How many replacements controllers and kube-scheduler have still to come to."""

from __future__ import annotations

from collections.abc import Iterable

from plimsoll.domain.actions import QUEUE_SECONDS
from plimsoll.domain.disruptions import WorkloadDisruption
from plimsoll.domain.kubernetes import OwnerKind
from plimsoll.domain.scheduling import Headroom


def queued(disruptions: Iterable[WorkloadDisruption], headroom: Headroom) -> int:
    """Count the replacements that controllers owe, and those that kube-scheduler could place now.

    Args:
        disruptions: all that is interrupted.
        headroom: with nodes that stand, and none that are on their way.
    """
    return sum(_owed(one) + _unscheduled(one, headroom) for one in disruptions)


def _owed(disruption: WorkloadDisruption) -> int:
    """Count the pods that a ReplicaSet has still to make for those that were released or evicted.

    Never more than these and a quarter of its pods, whatever the owner declares: evicted pods may be gone before they
    are made anew. None that its ReplicaSet says it cannot make.
    """
    workload = disruption.workload
    if workload is None or workload.replica_failure is not None:
        return 0
    if workload.ref.kind == OwnerKind.STATEFUL_SET:
        return 0  # its controller waits for the pod to end, not the pod for its controller
    counted = sum(p.deleting is None and not p.released for p in disruption.pods)
    begun = len(disruption.released) + len(disruption.leaving)
    gone = -(-len(disruption.pods) // 4)
    return min(begun + gone, max(0, disruption.replicas - counted))


def _unscheduled(disruption: WorkloadDisruption, headroom: Headroom) -> int:
    """Count its pods that have room and no node: kube-scheduler has not come to them yet."""
    return sum(
        p.pending
        and (disruption.now - p.created).total_seconds() < QUEUE_SECONDS
        and headroom.snapshot.where(p) is not None
        for p in disruption.staying
    )
