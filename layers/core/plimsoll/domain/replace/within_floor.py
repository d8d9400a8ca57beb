"""Eviction within the ready floor: for pods that must not be released.

A pod leaves when there is headroom for its replacement and enough others serve. This is how
workloads move that must not run twice, bare ReplicaSets, and those of controllers that we do not
know.
"""

from __future__ import annotations

from plimsoll.domain.actions import Evict
from plimsoll.domain.replace.disruption import WorkloadDisruption
from plimsoll.domain.replace.headroom import Headroom
from plimsoll.domain.replace.steps import CONTENDED, TIME_TO_STOP, Steps, Way


def _why(disruption: WorkloadDisruption) -> str:
    whys = (disruption.not_releasable.get(one.pod.uid) for one in disruption.evictable)
    return next((why for why in whys if why), "its pods do not serve")


def _steps(disruption: WorkloadDisruption, headroom: Headroom) -> Steps:
    floor = disruption.floor
    spare = max(disruption.serving - floor, int(disruption.pressed))
    allowance = disruption.allowance()
    actions = []
    waiting = None
    for one in sorted(disruption.evictable, key=lambda d: d.pod.serving):
        place = headroom.reserve(one.pod)
        if one.pod.serving and disruption.rolling:
            waiting = (
                "its rollout takes as many pods as may be missing, at any moment, and moves all"
            )
            continue
        if one.pod.serving and disruption.uncounted and not disruption.pressed:
            waiting = "nobody says how many pods there should be: one may be about to be made anew"
            continue
        hurried = one.may_need_more(disruption.now)
        kept = spare <= 0 and not (hurried and one.pod.uid in disruption.covering)
        if one.pod.serving and kept:
            waiting = f"{floor} must serve, which does not allow one less than {disruption.serving}"
            continue
        if place is None and not hurried:
            waiting = "waits for headroom for a replacement"
            continue
        if one.pod.serving and not hurried and not headroom.holds(one.pod):
            waiting = CONTENDED
            continue
        if one.pod.serving and (blocked := allowance.take(one.pod)) is not None:
            waiting = blocked
            continue
        headroom.contention.promise(one.pod)
        spare -= one.pod.serving
        there = TIME_TO_STOP if place is None else f"headroom on {place}"
        actions.append(
            Evict(
                pod=one.pod,
                reason=f"{_why(disruption)}; {there}, "
                f"{disruption.serving} serve and {floor} must"
                + ("; others are held back until it is replaced" if disruption.pressed else ""),
            )
        )
    return Steps(actions=tuple(actions), waiting=waiting)


WITHIN_FLOOR = Way(name="within the ready floor", surges=False, why=_why, steps=_steps)
