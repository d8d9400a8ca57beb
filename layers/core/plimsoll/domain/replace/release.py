"""Release: a replacement for every Ready pod of a Deployment, without a change of any count.

One patch takes the label `pod-template-hash` off a pod and makes its Deployment the controlling
owner. Its ReplicaSet makes another pod at once; the released pod keeps its Service endpoints until
it is evicted. One rule says when that is: of the released pods of a workload as many stay as it
has too few available pods of its own. So no released pod ever stands beside an available
replacement, where an autoscaler would count it and grow.

Measured on kube-apiserver 1.36; docs/drain.md has the rules and what they cost.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from plimsoll.domain.actions import Evict, Release, UndoRelease
from plimsoll.domain.capacity import replacement_of
from plimsoll.domain.pods import Pod
from plimsoll.domain.replace.disruption import EvictablePod, WorkloadDisruption
from plimsoll.domain.replace.headroom import Headroom
from plimsoll.domain.replace.steps import CONTENDED, Steps, Way
from plimsoll.domain.replace.within_floor import WITHIN_FLOOR

PATIENCE: Final = timedelta(minutes=5)
"""How long a replacement may be Pending, where no deadline is near, before its release is undone."""
WAVE: Final = timedelta(seconds=30)
"""What one wave of releases is reckoned to take. Waves are for workloads with an autoscaler."""


def _why(disruption: WorkloadDisruption) -> str | None:
    if disruption.released or any(
        _may_be_released(disruption, one) for one in disruption.evictable
    ):
        return "its Deployment makes the replacements first"
    return None


def _may_be_released(disruption: WorkloadDisruption, one: EvictablePod) -> bool:
    pod = one.pod
    return pod.serving and not pod.released and pod.uid not in disruption.not_releasable


def _steps(disruption: WorkloadDisruption, headroom: Headroom) -> Steps:
    evictions, blocked = _evictions(disruption, headroom)
    for action in evictions:
        headroom.contention.join(replacement_of(action.pod))
    undone = _undone(disruption, headroom, {action.pod.uid for action in evictions})
    leaving = {action.pod.uid for action in (*evictions, *undone)}
    standing = sum(p.uid not in leaving for p in disruption.released)
    releases, waiting = _releases(disruption, headroom, standing=standing)
    waiting = waiting or blocked
    if (standing or releases) and not waiting:
        waiting = f"{disruption.staying_ready} of {disruption.replicas} are Ready elsewhere"
    others = _others(disruption, headroom) if not evictions else Steps()
    return Steps(
        actions=(*evictions, *undone, *releases, *others.actions), waiting=others.waiting or waiting
    )


def _others(disruption: WorkloadDisruption, headroom: Headroom) -> Steps:
    """Move the pods that must not be released, or do not serve, within the ready floor."""
    others = tuple(
        one
        for one in disruption.evictable
        if not one.pod.released and not _may_be_released(disruption, one)
    )
    if not others:
        return Steps()
    return WITHIN_FLOOR.steps(replace(disruption, evictable=others), headroom)


def _evictions(
    disruption: WorkloadDisruption, headroom: Headroom
) -> tuple[Sequence[Evict], str | None]:
    """Evict the released pods whose replacements are available, and say what holds others back.

    Where no replacement can be made beside the released pods, one of these makes way for it. The
    next one does only once the replacement is Ready.
    """
    stay = max(0, disruption.replicas - disruption.available)
    on_interrupted = [p for p in disruption.released if p.uid in disruption.on_interrupted_nodes]
    order = sorted(on_interrupted, key=lambda p: (p.serving, disruption.deadline_of(p), p.name))
    leaving = order[: max(0, len(disruption.released) - stay)]
    reason = f"{disruption.available} of {disruption.replicas} others are available"
    moving = disruption.leaving or any(p.node and not p.ready for p in disruption.staying)
    if not leaving and not moving and disruption.deadline_near:
        for pod in order:
            if (hindrance := _hindrance(disruption, headroom, pod)) is not None:
                leaving, reason = [pod], f"its replacement cannot run beside it: {hindrance}"
                break
    allowed = len(leaving) if disruption.allowed is None else disruption.allowed
    blocked = disruption.blocked if allowed < len(leaving) else None
    return [Evict(pod=pod, reason=reason) for pod in leaving[:allowed]], blocked


def _hindrance(disruption: WorkloadDisruption, headroom: Headroom, pod: Pod) -> str | None:
    """Say why a replacement is not made, or has no node, until this released pod leaves; else None.

    A pod that no node and no node group can take is tried again without the released pod: spread
    constraints and anti-affinity by zone may count it.
    """
    if disruption.workload is not None and disruption.workload.replica_failure is not None:
        return disruption.workload.replica_failure
    lost = (p for p in disruption.staying if p.uid in headroom.unplaceable)
    new = next(lost, None)
    if new is not None and headroom.fits_without(new, pod):
        return f"it counts in the spread or anti-affinity of {new.name}, which is Pending"
    return None


def _undone(
    disruption: WorkloadDisruption, headroom: Headroom, evicted: Collection[str]
) -> Sequence[Evict | UndoRelease]:
    """Hand pods back whose node stays, and those whose replacements found no node in `PATIENCE`.

    Where no deadline is near, a replacement that cannot even be made is not waited for.
    """
    found = [
        undo(disruption, pod, "its node is not interrupted any more")
        for pod in disruption.released
        if pod.uid not in disruption.on_interrupted_nodes | disruption.left_to_drain
    ]
    if not disruption.deadline_near:
        workload = disruption.workload
        unmade = disruption.missing if workload and workload.replica_failure else 0
        unplaced = [
            p
            for p in disruption.staying
            if p.pending
            and disruption.now - p.created >= PATIENCE
            and headroom.snapshot.where(p) is None
        ]
        standing = [
            p
            for p in disruption.released
            if p.uid in disruption.on_interrupted_nodes and p.uid not in evicted
        ]
        found += [
            undo(disruption, pod, "its replacement found no node, and no deadline is near")
            for pod in standing[: len(unplaced) + unmade]
        ]
    return found


def undo(disruption: WorkloadDisruption, pod: Pod, reason: str) -> Evict | UndoRelease:
    """Hand a pod back to its ReplicaSet, if that still is the current one; else it is surplus."""
    current = disruption.current
    if current is not None and pod.generate_name == f"{current.ref.name}-":
        return UndoRelease(pod=pod, replica_set=current, reason=reason)
    return Evict(pod=pod, reason=f"{reason}, and its ReplicaSet is not the current one: surplus")


def _releases(
    disruption: WorkloadDisruption, headroom: Headroom, *, standing: int
) -> tuple[Sequence[Release], str | None]:
    """Release pods, those of superseded ReplicaSets last, as many as a wave takes."""
    if disruption.workload is None:
        return (), None
    able = [one for one in disruption.evictable if _may_be_released(disruption, one)]
    current = disruption.current
    able.sort(key=lambda o: (current is None or o.pod.owner != current.ref, o.pod.name))
    wave = able[: _wave_size(disruption, able, standing)]
    waiting = None if len(wave) == len(able) else "waits for the wave before, for its autoscaler"
    fits = sum(headroom.add(one.pod) is not None for one in wave)
    if (headroom.reserved or not disruption.deadline_near) and fits < len(wave):
        wave, waiting = wave[:fits], "waits for headroom for its replacements"
    if wave:
        new = replacement_of(wave[0].pod)
        spared = headroom.contention.spares(new, len(wave))
        if spared < len(wave):
            wave, waiting = wave[:spared], CONTENDED
        for _ in wave:
            headroom.contention.join(new)
    reason = (
        f"{len(disruption.evictable)} of its {disruption.replicas} pods stand on interrupted nodes; "
        "their replacements come first"
    )
    return [
        Release(
            pod=one.pod,
            owner=disruption.workload.ref,
            owner_uid=disruption.workload.uid,
            interruption=one.interruption,
            reason=reason,
        )
        for one in wave
    ], waiting


def _wave_size(disruption: WorkloadDisruption, able: Sequence[EvictablePod], standing: int) -> int:
    """Return how many pods to release now.

    An autoscaler counts replacements as idle until they are Ready, which holds a scale-up back. So
    where there is one, a quarter of the replicas are replaced at a time, unless the deadline does
    not allow it.
    """
    workload = disruption.workload
    if workload is None or workload.scaler is None:
        return len(able)
    quarter = max(1, -(-disruption.replicas // 4))
    waves = -(-len(able) // quarter)
    starts = [one.latest_start for one in able if one.latest_start is not None]
    if starts and min(starts) - disruption.now < waves * WAVE:
        return len(able)
    return max(0, quarter - standing)


RELEASE = Way(name="release", surges=True, why=_why, steps=_steps)
