"""A replacement that stands where another workload, which serves nowhere now, would have its place.

It waited for a node, and took a place that its owner freed for a moment. The released pod still serves, so the
release is undone while there is time for another replacement.
"""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll.domain.disruptions import WorkloadDisruption
from plimsoll.domain.kubernetes import Pod
from plimsoll.domain.scheduling import Headroom


def displacing(disruption: WorkloadDisruption, headroom: Headroom) -> Sequence[tuple[Pod, str]]:
    """Return what to hand back where a replacement took the place of another workload, and whose it was.

    A ReplicaSet deletes pods without a node first, then those that are not Ready: so many are handed back that
    it comes to that one. None, if they have no time for another replacement.
    """
    starting = [p for p in disruption.staying if not p.ready]
    bound = [p for p in starting if p.node]
    if len(bound) != 1 or (other := headroom.displaced_by(bound[0])) is None:
        return ()
    back = [one for one in disruption.evictable if one.pod.released][: len(starting)]
    if len(back) < len(starting) or any(
        one.late(disruption.now + disruption.start) for one in back
    ):
        return ()
    return [(one.pod, f"{bound[0]} took the place of {other}") for one in back]


def leaving_a_place(
    disruption: WorkloadDisruption, headroom: Headroom, *, undone: bool
) -> str | None:
    """Say which pod leaves its place to another workload: released again too early, it would stay."""
    counted = sum(not p.released and p.deleting is None for p in disruption.pods)
    for pod in disruption.pods:
        leaves = pod.deleting is not None or undone or counted > disruption.replicas
        elsewhere = pod.node and not pod.ready and pod.uid not in disruption.on_interrupted_nodes
        if leaves and elsewhere and (other := headroom.displaced_by(pod)) is not None:
            return f"waits until {pod} has left its place to {other}"
    return None
