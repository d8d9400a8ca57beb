"""How many replacements controllers and kube-scheduler have still to come to, and how many more may be begun.

If the pods of hundreds of nodes were all released at once, controllers would make replacements for a few pods of every
node, in an order of their own, and no node would be empty in time. Plimsoll therefore begins them in turn
(`plimsoll.domain.drain.rounds`), with a bound on those under way. A replacement that waits for a node, or starts on
its node, is no work for a controller and does not count. A small interruption never reaches the bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from plimsoll.domain.disruptions import WorkloadDisruption
from plimsoll.domain.kubernetes import OwnerKind
from plimsoll.domain.scheduling import Headroom

MOST_UNDER_WAY_PODS: Final = 300
"""More than a few nodes hold, and half a minute's work of controllers at their default rates."""
LEAST_BEGUN_PODS: Final = 8
"""How many each plan begins, however many are said to be under way: that count rests on objects which tenants write,
and no tenant may stop the drain of others."""
QUEUE_SECONDS: Final = 15.0
"""How long a pod counts that kube-scheduler could place and has not placed."""


def most_begun(disruptions: Iterable[WorkloadDisruption], headroom: Headroom) -> int:
    """Return how many replacements may be begun now.

    Under way are those that controllers owe, and those that kube-scheduler could place now.

    Args:
        disruptions: all that is interrupted.
        headroom: with nodes that stand, and none that are on their way.
    """
    under_way = sum(_owed(one) + _unscheduled(one, headroom) for one in disruptions)
    return max(LEAST_BEGUN_PODS, MOST_UNDER_WAY_PODS - under_way)


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
