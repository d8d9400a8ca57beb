"""Which pods somebody makes again once they have ended."""

from __future__ import annotations

from plimsoll.domain.kubernetes.gangs import in_gang
from plimsoll.domain.kubernetes.pods import OwnerKind, Pod


def is_recreated(pod: Pod) -> bool:
    """Whether a controller is expected to make a pod again: if not, its replacement needs no node.

    Nobody makes a bare pod again, nor a pod that is never restarted and whose owner runs it once: a CI runner, a step
    of a workflow. A Job, a gang and a workload of Kubernetes make such a pod again.
    """
    if pod.bare:
        return False
    return pod.restarts or pod.owner is None or pod.owner.kind in {*OwnerKind} or in_gang(pod)
