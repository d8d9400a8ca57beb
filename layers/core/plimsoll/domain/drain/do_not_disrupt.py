"""Which pods Karpenter is to leave to us: those that have or get a replacement first, and those that move one by one.

At an interruption Karpenter evicts within seconds whatever it may. It leaves a pod alone that says
`karpenter.sh/do-not-disrupt`, also while it drains its node, and ends the node only once that pod has gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from math import ceil

from plimsoll.domain.actions import Action, DoNotDisrupt, Evict, Step, Uncordon, UndoRelease
from plimsoll.domain.disruptions import EvictablePod, WorkloadDisruption, why_opted_out
from plimsoll.domain.interruptions import is_near
from plimsoll.domain.kubernetes import DO_NOT_DISRUPT, PROTECTED, OwnerKind
from plimsoll.domain.observation import Observation


def protections(
    disruption: WorkloadDisruption, actions: Collection[Action]
) -> Iterator[DoNotDisrupt]:
    """Yield the marks of pods that wait for their turn; a release brings its own.

    Args:
        disruption: a workload with pods to move.
        actions: what this plan does with its pods.
    """
    leaving = {a.pod.uid for a in actions if isinstance(a, Evict | UndoRelease)}
    for one in disruption.evictable:
        waits = one.pod.released or disruption.ref.kind == OwnerKind.STATEFUL_SET
        if waits and one.pod.uid not in leaving and (age := do_not_disrupt(one, disruption.now)):
            reason = "Karpenter would evict it before its turn"
            yield DoNotDisrupt(pod=one.pod, duration=age, reason=reason)


def do_not_disrupt(one: EvictablePod, now: datetime) -> str | None:
    """Return for how long Karpenter is to leave a pod to us, as its age at its eviction deadline; None: it need not.

    Only a near deadline is worth it: until then its node, and a NodePool's limits, wait for the pod.
    """
    end, started = one.eviction_deadline, one.pod.started
    node = one.departure
    near = node.of_node_pool and node.exact and is_near(node.deadline, now)
    if not near or end is None or end <= now or started is None:
        return None
    return (
        None
        if DO_NOT_DISRUPT in one.pod.annotations
        else f"{ceil((end - started).total_seconds())}s"
    )


def outlived(
    seen: Observation, interrupted: Collection[str], steps: Collection[Step]
) -> Iterator[DoNotDisrupt]:
    """Yield what takes marks off pods whose nodes stay. A release that is undone takes off its own."""
    stay = {name for step in steps if isinstance(step.action, Uncordon) for name in step.nodes}
    for pod in seen.pods:
        if PROTECTED not in pod.annotations or pod.released or pod.deleting is not None:
            continue
        here = pod.node not in interrupted or pod.node in stay
        if here and why_opted_out(seen, pod) is None:
            reason = "its node is not interrupted any more"
            yield DoNotDisrupt(pod=pod, duration=None, reason=reason)
