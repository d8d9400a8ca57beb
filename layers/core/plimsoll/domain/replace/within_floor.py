"""Eviction within the ready floor: for whatever count is not ours to touch.

A pod leaves when its replacement has headroom now and enough others serve. This is how Deployments of
an autoscaler or a GitOps tool move, those that must not run twice, and any kind that is unknown.
"""

from __future__ import annotations

from plimsoll.domain.actions import Evict
from plimsoll.domain.replace.disruption import WorkloadDisruption
from plimsoll.domain.replace.headroom import Headroom
from plimsoll.domain.replace.owners import count_owner
from plimsoll.domain.replace.steps import CONTENDED, Steps, Way


def _why(disruption: WorkloadDisruption) -> str | None:
    workload = disruption.workload
    if workload is None:
        return f"{disruption.ref.kind} is a kind that Plimsoll does not scale"
    if disruption.unreadable is not None:
        return f"its note cannot be read: {disruption.unreadable}"
    reasons = (
        (workload.strategy == "Recreate", "its strategy Recreate forbids two generations at once"),
        (disruption.holds_volume, "its volume can be on one node only"),
        (workload.paused, "its rollout is paused"),
        (workload.rolling_out and disruption.temporary is None, "a rollout is under way"),
    )
    return count_owner(workload) or next((why for holds, why in reasons if holds), None)


def _steps(disruption: WorkloadDisruption, headroom: Headroom) -> Steps:
    floor = disruption.floor
    spare = disruption.serving - floor
    allowed = disruption.allowed
    actions = []
    waiting = None
    for one in sorted(disruption.evictable, key=lambda d: (d.pod.serving, d.pod.name)):
        place = headroom.keep(one.pod)
        if one.pod.serving and _rolls(disruption):
            waiting = (
                "its rollout takes as many pods as may be missing, at any moment, and moves all"
            )
            continue
        if one.pod.serving and (spare <= 0 or allowed == 0):
            words = f"{floor} must serve, which does not allow one less than {disruption.serving}"
            waiting = words if spare <= 0 else disruption.blocked
            continue
        if place is None:
            waiting = "waits for headroom for a replacement"
            continue
        if one.pod.serving and not headroom.contention.holds(one.pod):
            waiting = CONTENDED
            continue
        headroom.contention.promise(one.pod)
        if one.pod.serving:
            spare -= 1
            allowed = None if allowed is None else allowed - 1
        actions.append(
            Evict(
                pod=one.pod,
                reason=f"{_why(disruption) or 'within its ready floor'}; headroom on {place}, "
                f"{disruption.serving} serve and {floor} must",
            )
        )
    return Steps(actions=tuple(actions), waiting=waiting)


def _rolls(disruption: WorkloadDisruption) -> bool:
    workload = disruption.workload
    return workload is not None and workload.rolling_out and not workload.paused


WITHIN_FLOOR = Way(name="within the ready floor", surges=False, why=_why, steps=_steps)
