"""Eviction within the ready floor: for whatever count is not ours to touch.

A pod leaves when its replacement has room now and enough others serve. This is how Deployments of
an autoscaler or a GitOps tool move, those that must not run twice, and any kind that is unknown.
"""

from __future__ import annotations

from plimsoll.domain.actions import Evict
from plimsoll.domain.replace.case import Case
from plimsoll.domain.replace.owners import count_owner
from plimsoll.domain.replace.room import Room
from plimsoll.domain.replace.steps import CROWDED, Steps, Way


def _why(case: Case) -> str | None:
    workload = case.workload
    if workload is None:
        return f"{case.ref.kind} is a kind that Plimsoll does not scale"
    if case.unreadable is not None:
        return f"its note cannot be read: {case.unreadable}"
    reasons = (
        (workload.strategy == "Recreate", "its strategy Recreate forbids two generations at once"),
        (case.holds_volume, "its volume can be on one node only"),
        (workload.paused, "its rollout is paused"),
        (workload.rolling_out and case.temporary is None, "a rollout is under way"),
    )
    return count_owner(workload) or next((why for holds, why in reasons if holds), None)


def _steps(case: Case, room: Room) -> Steps:
    floor = case.floor
    spare = case.serving - floor
    allowed = case.allowed
    actions = []
    waiting = None
    for one in sorted(case.doomed, key=lambda d: (d.pod.serving, d.pod.name)):
        place = room.keep(one.pod)
        if one.pod.serving and _rolls(case):
            waiting = (
                "its rollout takes as many pods as may be missing, at any moment, and moves all"
            )
            continue
        if one.pod.serving and (spare <= 0 or allowed == 0):
            words = f"{floor} must serve, which does not allow one less than {case.serving}"
            waiting = words if spare <= 0 else case.blocked
            continue
        if place is None:
            waiting = "waits for room for a replacement"
            continue
        if one.pod.serving and not room.crowd.holds(one.pod):
            waiting = CROWDED
            continue
        room.crowd.promise(one.pod)
        if one.pod.serving:
            spare -= 1
            allowed = None if allowed is None else allowed - 1
        actions.append(
            Evict(
                pod=one.pod,
                reason=f"{_why(case) or 'within its ready floor'}; room on {place}, "
                f"{case.serving} serve and {floor} must",
            )
        )
    return Steps(actions=tuple(actions), waiting=waiting)


def _rolls(case: Case) -> bool:
    workload = case.workload
    return workload is not None and workload.rolling_out and not workload.paused


WITHIN_FLOOR = Way(name="within the ready floor", surges=False, why=_why, steps=_steps)
