"""Which pods Karpenter is to leave to us: those that have or get a replacement first, and those that move one by one.

At an interruption Karpenter evicts within seconds whatever it may. It leaves a pod alone that says
`karpenter.sh/do-not-disrupt`, also while it drains its node, and ends the node only once that pod has gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from plimsoll.domain.actions import Action, DoNotDisrupt, Evict, Step, Uncordon, UndoRelease
from plimsoll.domain.disruptions import WorkloadDisruption, why_opted_out
from plimsoll.domain.kubernetes import PROTECTED, OwnerKind
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
        if waits and one.pod.uid not in leaving and (age := one.do_not_disrupt(disruption.now)):
            reason = "Karpenter would evict it before its turn"
            yield DoNotDisrupt(pod=one.pod, duration=age, reason=reason)


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
