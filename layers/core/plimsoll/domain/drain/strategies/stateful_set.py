"""StatefulSets: one pod at a time, its place made ready first. The nearest deadline comes first, then the highest ordinal.

A pod of a StatefulSet keeps its name, so its replacement cannot stand beside it; and with volumes
it must find headroom where they are. Source:
https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#deployment-and-scaling-guarantees
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from plimsoll.domain.actions import Evict
from plimsoll.domain.disruptions import Allowance, EvictablePod, WorkloadDisruption
from plimsoll.domain.drain.strategies.steps import (
    CONTENDED,
    SHORT_OF_TIME,
    TIME_TO_STOP,
    Steps,
    Strategy,
)
from plimsoll.domain.interruptions import NEVER
from plimsoll.domain.kubernetes import OwnerKind, Pod, quorum, replacement_of
from plimsoll.domain.observation import Observation
from plimsoll.domain.scheduling import Headroom


def returning(seen: Observation) -> Iterator[Pod]:
    """Yield the next pod of each StatefulSet of which one has ended and is not made anew yet.

    That takes a controller a moment, in a storm seconds, in which nothing shows that a place is about to be
    taken. While any of its pods does not serve, its controller may wait for that.
    """
    for ref, workload in seen.workload.items():
        pods = seen.of_workload.get(ref, ())
        if ref.kind != OwnerKind.STATEFUL_SET or not 0 < len(pods) < workload.replicas:
            continue
        if not all(pod.serving for pod in pods):
            continue
        mate, taken = min(pods, key=lambda pod: pod.name), {pod.name for pod in pods}
        ordinals = range(workload.first_ordinal, workload.first_ordinal + len(pods) + 1)
        names = (f"{ref.name}-{ordinal}" for ordinal in ordinals)
        name = next(name for name in names if name not in taken)
        claims = tuple(
            claim.removesuffix(mate.name) + name if claim.endswith(mate.name) else claim
            for claim in mate.scheduling.claims
        )
        scheduling = replace(mate.scheduling, claims=claims)
        yield replace(replacement_of(mate), name=name, scheduling=scheduling)


def _why(disruption: WorkloadDisruption) -> str | None:
    if disruption.ref.kind == "StatefulSet":
        return "pods of a StatefulSet keep their names and cannot run twice"
    return None


def _turn(evictable: EvictablePod) -> tuple[datetime, int]:
    tail = evictable.pod.name.rpartition("-")[2]
    ordinal = int(tail) if tail.isdecimal() and tail.isascii() else 0
    return evictable.eviction_deadline or NEVER, -ordinal


def _steps(disruption: WorkloadDisruption, headroom: Headroom, allowance: Allowance) -> Steps:
    # By eviction deadline, and of the same one the highest ordinal first, as its controller scales down.
    evictable = sorted(disruption.evictable, key=_turn)
    # Places are claimed for all before one is chosen: the capacity that is short is asked for at once, not one by one.
    places = [(d, headroom.reserve(d.pod)) for d in evictable]
    sick = [(d, place) for d, place in places if not d.pod.serving]
    # Its controller first: two that take pods of one set would take two at once.
    if _rolling_out(disruption):
        return Steps(waiting="a rollout is under way, and takes its pods one by one itself")
    # Then whoever runs out of time, whether its place is ready or not. All together where one by one takes too long. Else
    # one at a time, and only once all others serve again: the usual case, which costs the least.
    if in_time := tuple(_in_time(disruption, evictable, allowance)):
        for action in in_time:
            headroom.contention.promise(action.pod)
        return Steps(actions=in_time)
    fewer = disruption.floor < disruption.replicas - 1 and _is_short_of_time(disruption)
    if fewer and (together := tuple(_together(disruption, headroom, places, allowance))):
        return Steps(actions=together)
    others = [
        p
        for p in disruption.pods
        if p.uid not in disruption.steady and all(d.pod.uid != p.uid for d, _ in sick)
    ]
    short = disruption.serving < disruption.replicas
    if others or (short and not sick):
        just = others and all(map(disruption.serves, others))
        least = " for minReadySeconds" if just else ""
        return Steps(waiting=f"waits until all its other pods are Ready{least}")
    # Pods that do not serve leave before any that does: they cost the floor nothing.
    return _next(disruption, headroom, sick or places, allowance)


def _hurries(disruption: WorkloadDisruption, one: EvictablePod) -> bool:
    """Whether one of several pods that move in turn leaves although nobody knows of a place.

    It may need all the time that is left to stop. Or not all would be replaced in turn, and would leave together at the
    end: as far as that is known, or its owner provided for it by a budget. No pod that serves leaves for that where its
    replacement would not serve before the deadline.
    """
    sure = one.stop.known or one.pod.uid in disruption.covering
    return one.may_need_more(disruption.now) or (sure and _is_short_of_time(disruption))


def _is_short_of_time(disruption: WorkloadDisruption) -> bool:
    """Whether its pods would not all be replaced one after the other, each stopped and started, before their deadline."""
    moving = [d for d in disruption.evictable if d.deadline is not None]
    if len(moving) < 2:  # noqa: PLR2004 - one alone waits for nobody
        return False
    each = timedelta(seconds=max(d.stop.seconds for d in moving)) + disruption.start
    last = max(d.deadline for d in moving if d.deadline)
    in_turn = disruption.now + len(moving) * each
    return disruption.now + disruption.start <= last < in_turn


def _together(
    disruption: WorkloadDisruption,
    headroom: Headroom,
    places: Sequence[tuple[EvictablePod, str | None]],
    allowance: Allowance,
) -> Iterator[Evict]:
    """Yield evictions of as many pods with a place as the floor and the budget let go: there is no time for one after the other."""
    spare = len(disruption.steady) - disruption.floor
    for one, place in places:
        if place is None or spare < one.pod.serving or not headroom.holds(one.pod):
            continue
        if one.pod.serving and allowance.take(one.pod) is not None:
            continue
        spare -= one.pod.serving
        headroom.contention.promise(one.pod)
        reason = (
            f"{SHORT_OF_TIME}; its place on {place} is ready, "
            f"{disruption.serving} of {disruption.replicas} serve and {disruption.floor} must"
        )
        yield Evict(pod=one.pod, reason=reason)


def _rolling_out(disruption: WorkloadDisruption) -> bool:
    """Whether its controller takes its pods one by one itself: not where one of ours does not serve."""
    rolling = disruption.workload is not None and disruption.workload.rolling_out
    return rolling and all(one.pod.serving for one in disruption.evictable)


def _leaving_anyway(disruption: WorkloadDisruption, allowance: Allowance) -> Iterator[Pod]:
    evictable = () if _rolling_out(disruption) else sorted(disruption.evictable, key=_turn)
    return (action.pod for action in _in_time(disruption, evictable, allowance))


def _next(
    disruption: WorkloadDisruption,
    headroom: Headroom,
    places: Sequence[tuple[EvictablePod, str | None]],
    allowance: Allowance,
) -> Steps:
    """Evict the first pod that has a place, or that may need all the time that is left."""
    waiting = "waits for headroom: " + ", ".join(one.pod.name for one, _ in places)
    floor = max(disruption.floor, disruption.replicas - 1)
    spare = disruption.serving - floor
    for one, place in places:
        hurried = _hurries(disruption, one) and (spare > 0 or not one.pod.serving)
        if place is None and not hurried:
            continue
        if one.pod.serving:
            if spare <= 0:
                return Steps(waiting=f"{floor} must serve, and {disruption.serving} serve")
            if not hurried and not headroom.holds(one.pod):
                return Steps(waiting=CONTENDED)
            if (blocked := allowance.take(one.pod)) is not None:
                waiting = blocked
                continue
        headroom.contention.promise(one.pod)
        there = TIME_TO_STOP if one.may_need_more(disruption.now) else SHORT_OF_TIME
        if place is not None:
            there = f"its place on {place} is ready"
        reason = f"{there}, and {disruption.serving} of {disruption.replicas} serve"
        return Steps(actions=(Evict(pod=one.pod, reason=reason),))
    return Steps(waiting=waiting)


def _in_time(
    disruption: WorkloadDisruption, evictable: Sequence[EvictablePod], allowance: Allowance
) -> Iterator[Evict]:
    """Yield evictions of pods that may need all the time that is left, as many as their budget lets go.

    A quorum of the members stays Ready: it is worth more than the time that a grace period may or may not ask for.
    """
    serving = disruption.serving
    for one in evictable:
        waits = not (one.pod.serving and one.may_need_more(disruption.now))
        if waits or one.pod.uid not in disruption.covering:
            continue
        if serving - 1 < max(quorum(disruption.ref.kind, disruption.replicas), disruption.kept):
            return
        if allowance.take(one.pod) is None:
            serving -= 1
            kept = (
                f", and a quorum of {quorum(disruption.ref.kind, disruption.replicas)} stays"
                if quorum(disruption.ref.kind, disruption.replicas)
                else ""
            )
            yield Evict(pod=one.pod, reason=f"{TIME_TO_STOP}; its budget lets it go{kept}")


STATEFUL_SET = Strategy(
    name="one by one", surges=False, why=_why, steps=_steps, leaving_anyway=_leaving_anyway
)
