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
from plimsoll.domain.replace.case import Case
from plimsoll.domain.replace.owners import count_owner
from plimsoll.domain.replace.room import Room
from plimsoll.domain.replace.steps import CROWDED, Steps, Way
from plimsoll.domain.workloads import Workload


def _why(case: Case) -> str | None:
    workload = case.workload
    if workload is None or case.ref.kind != "Deployment" or workload.strategy != "RollingUpdate":
        return None
    if workload.rolling_out or workload.paused or case.holds_volume or case.unreadable is not None:
        return None
    owner = count_owner(workload)
    if owner is None or len(case.doomed) < len(case.pods):
        return None
    if unavailable(workload.replicas, workload.max_unavailable, workload.max_surge):
        return None
    return f"{owner}, none of its pods may be missing, and all must leave"


def _steps(case: Case, room: Room) -> Steps:
    """Start it when its first pods have room, or all where nothing else may be Pending.

    Once begun it makes one after the other, whether there is room or not.
    """
    workload = case.workload
    if workload is None or not case.doomed:
        return Steps()
    at_once = min(_surge(workload), len(case.doomed))
    wanted = len(case.doomed) if room.kept or case.calm else at_once
    fits = sum(room.add(d.pod) is not None for d in case.doomed)
    if fits < wanted:
        return Steps(waiting=f"waits for room for {wanted} replacements, there is some for {fits}")
    new = replacement_of(case.doomed[0].pod)
    if room.crowd.spares(new, at_once) < at_once:
        return Steps(waiting=CROWDED)
    for _ in range(at_once):
        room.crowd.join(new)
    reason = f"{_why(case)}; there is room for {fits} replacements of {len(case.doomed)}"
    return Steps(actions=(Restart(workload=workload, at=case.now, reason=reason),))


def _surge(workload: Workload) -> int:
    """Return how many pods a rollout makes at once; one at least, where none may be missing."""
    return max(1, resolve(workload.max_surge, workload.replicas, round_up=True))


RESTART = Way(name="rolling restart", surges=True, why=_why, steps=_steps)
