"""The rolling restart: for a Deployment whose count is not ours, and of which no pod may be missing.

Its own rollout makes every replacement before it takes a pod, which is what we want and may not do
by the count. But it takes all of its pods, those that could stay too, so it is for workloads of
which every pod must go. Source:
https://kubernetes.io/docs/reference/kubectl/generated/kubectl_rollout/kubectl_rollout_restart/
"""

from __future__ import annotations

from plimsoll.domain.actions import Restart
from plimsoll.domain.capacity import replacement_of
from plimsoll.domain.floors import unavailable
from plimsoll.domain.replace.case import Case
from plimsoll.domain.replace.owners import count_owner
from plimsoll.domain.replace.room import Room
from plimsoll.domain.replace.steps import CROWDED, Steps, Way


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
    workload = case.workload
    if workload is None or not case.doomed:
        return Steps()
    one = case.doomed[0].pod
    place = room.add(one)
    if place is None:
        return Steps(waiting="waits for room for the first replacement")
    if not room.crowd.spares(replacement_of(one), 1):
        return Steps(waiting=CROWDED)
    room.crowd.join(replacement_of(one))
    return Steps(
        actions=(
            Restart(
                workload=workload,
                at=case.now,
                reason=f"{_why(case)}; the first of {len(case.doomed)} replacements has room on {place}",
            ),
        )
    )


RESTART = Way(name="rolling restart", surges=True, why=_why, steps=_steps)
