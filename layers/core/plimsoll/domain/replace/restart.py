"""The rolling restart: for a Deployment whose count is not ours, and of which no pod may be missing.

Its own rollout makes every replacement before it takes a pod, which is what we want and may not do
by the count. But it takes all of its pods, those that could stay too, so it is for workloads of
which every pod must go. Source:
https://kubernetes.io/docs/reference/kubectl/generated/kubectl_rollout/kubectl_rollout_restart/
"""

from __future__ import annotations

from plimsoll.domain.actions import Restart
from plimsoll.domain.capacity import replacement_of
from plimsoll.domain.floors import resolve, unavailable
from plimsoll.domain.replace.disruption import WorkloadDisruption
from plimsoll.domain.replace.headroom import Headroom
from plimsoll.domain.replace.owners import count_owner
from plimsoll.domain.replace.steps import CONTENDED, Steps, Way
from plimsoll.domain.workloads import Workload


def _why(disruption: WorkloadDisruption) -> str | None:
    workload = disruption.workload
    if (
        workload is None
        or disruption.ref.kind != "Deployment"
        or workload.strategy != "RollingUpdate"
    ):
        return None
    if (
        workload.rolling_out
        or workload.paused
        or disruption.holds_volume
        or disruption.unreadable is not None
    ):
        return None
    owner = count_owner(workload)
    if owner is None or len(disruption.evictable) < len(disruption.pods):
        return None
    if unavailable(workload.replicas, workload.max_unavailable, workload.max_surge):
        return None
    return f"{owner}, none of its pods may be missing, and all must leave"


def _steps(disruption: WorkloadDisruption, headroom: Headroom) -> Steps:
    """Start it when its first pods have headroom, or all where nothing else may be Pending.

    Once begun it makes one after the other, whether there is headroom or not.
    """
    workload = disruption.workload
    if workload is None or not disruption.evictable:
        return Steps()
    at_once = min(_surge(workload), len(disruption.evictable))
    wanted = len(disruption.evictable) if headroom.kept or disruption.calm else at_once
    fits = sum(headroom.add(d.pod) is not None for d in disruption.evictable)
    if fits < wanted:
        return Steps(
            waiting=f"waits for headroom for {wanted} replacements, there is some for {fits}"
        )
    new = replacement_of(disruption.evictable[0].pod)
    if headroom.contention.spares(new, at_once) < at_once:
        return Steps(waiting=CONTENDED)
    for _ in range(at_once):
        headroom.contention.join(new)
    reason = f"{_why(disruption)}; there is headroom for {fits} replacements of {len(disruption.evictable)}"
    return Steps(actions=(Restart(workload=workload, at=disruption.now, reason=reason),))


def _surge(workload: Workload) -> int:
    """Return how many pods a rollout makes at once; one at least, where none may be missing."""
    return max(1, resolve(workload.max_surge, workload.replicas, round_up=True))


RESTART = Way(name="rolling restart", surges=True, why=_why, steps=_steps)
