"""Eviction within the ready floor: for pods that must not be released.

A pod leaves when there is headroom for its replacement and enough others serve. This is how
workloads move that must not run twice, bare ReplicaSets, and those of controllers that we do not
know.
"""

from __future__ import annotations

from plimsoll.domain.actions import Evict
from plimsoll.domain.disruptions import Allowance, WorkloadDisruption
from plimsoll.domain.drain.strategies.steps import (
    CONTENDED,
    TIME_TO_STOP,
    Steps,
    Strategy,
    is_rolling,
)
from plimsoll.domain.scheduling import Headroom


def _why(disruption: WorkloadDisruption) -> str:
    whys = (disruption.not_releasable.get(one.pod.uid) for one in disruption.evictable)
    return next((why for why in whys if why), "its pods do not serve")


def _steps(disruption: WorkloadDisruption, headroom: Headroom, allowance: Allowance) -> Steps:
    floor = disruption.floor
    serving = steady = len(disruption.steady)
    actions = []
    waiting = None
    # Those that do not serve first: they cost nobody anything, and need no spare pod.
    for one in sorted(disruption.evictable, key=lambda d: d.pod.serving):
        # Claimed before it is known whether it leaves now: a pod that is held back keeps its place from replacements.
        place = headroom.reserve(one.pod)
        hurried = one.may_need_more(disruption.now)
        if one.pod.serving:
            held = _why_held(disruption, hurried=hurried)
            covered = one.pod.uid in disruption.covering
            by_budget = hurried and covered and serving > disruption.kept
            if held is None and serving <= floor and not by_budget:
                gone = " after the evictions of now" if serving < steady else ""
                held = f"{floor} must serve, and {serving} serve{gone}"
            hurried = hurried and (serving > floor or by_budget)
            if held is None and place is not None and not hurried and not headroom.holds(one.pod):
                held = CONTENDED
            if held is not None:
                waiting = held
                continue
        if place is None and not hurried:
            waiting = "waits for headroom for a replacement"
            continue
        # The budget last: what it counts as let go has to leave.
        if one.pod.serving and (blocked := allowance.take(one.pod)) is not None:
            waiting = blocked
            continue
        headroom.contention.promise(one.pod)
        there = TIME_TO_STOP if place is None else f"headroom on {place}"
        actions.append(
            Evict(
                pod=one.pod,
                reason=f"{_why(disruption)}; {there}, {serving} serve and {floor} must",
            )
        )
        if one.pod.serving:
            serving -= 1
    return Steps(actions=tuple(actions), waiting=waiting)


def _why_held(disruption: WorkloadDisruption, *, hurried: bool) -> str | None:
    """Say why a pod that serves may not leave now, whatever its ready floor and budgets allow."""
    if disruption.workload is not None and (why := disruption.workload.makes_none):
        return f"no pod would be made in its place: {why}"
    if is_rolling(disruption):
        return "its rollout takes as many pods as may be missing, at any moment, and moves all"
    if disruption.uncounted and not hurried:
        return "nobody says how many pods there should be: one may be about to be made anew"
    return None


EVICT_WITHIN_FLOOR = Strategy(name="within the ready floor", surges=False, why=_why, steps=_steps)
