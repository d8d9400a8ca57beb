"""Release: a replacement for every Ready pod of a Deployment, without a change of any count.

One patch takes the label `pod-template-hash` off a pod and makes its Deployment the controlling
owner. Its ReplicaSet makes another pod at once; the released pod keeps its Service endpoints until
it is evicted. One rule says when that is: of the released pods of a workload as many stay as it
has too few available pods of its own. So no released pod ever stands beside an available
replacement, where an autoscaler would count it and grow.

Measured on kube-apiserver 1.36; docs/drain.md has the rules and what they cost.
"""

from __future__ import annotations

from collections.abc import Sequence
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
"""How long a replacement may be Pending, where no deadline presses, before its release is undone."""
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
    evictions = _evictions(disruption)
    for action in evictions:
        headroom.contention.join(replacement_of(action.pod))
    undone = _undone(disruption, headroom)
    leaving = {action.pod.uid for action in evictions} | {a.pod.uid for a in undone}
    kept = [p for p in disruption.released if p.uid not in leaving]
    releases, waiting = _releases(disruption, headroom, standing=len(kept))
    if (kept or releases) and not waiting:
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


def _evictions(disruption: WorkloadDisruption) -> Sequence[Evict]:
    """Evict the released pods whose replacements are available; one more where none can be made."""
    stay = max(0, disruption.replicas - disruption.available)
    on_interrupted = [p for p in disruption.released if p.uid in disruption.on_interrupted_nodes]
    order = sorted(on_interrupted, key=lambda p: (p.serving, disruption.deadline_of(p), p.name))
    leaving = order[: max(0, len(disruption.released) - stay)]
    reason = f"{disruption.available} of {disruption.replicas} others are available"
    if not leaving and order and (hindrance := disruption.hindrance) is not None:
        leaving, reason = order[:1], f"its replacement cannot be made beside it: {hindrance}"
    if disruption.allowed is not None:
        leaving = leaving[: disruption.allowed]
    return [Evict(pod=pod, reason=reason) for pod in leaving]


def _undone(disruption: WorkloadDisruption, headroom: Headroom) -> Sequence[Evict | UndoRelease]:
    """Hand pods back whose node stays, and those whose replacements found no node in `PATIENCE`."""
    found = [
        undo(disruption, pod, "its node is not interrupted any more")
        for pod in disruption.released
        if pod.uid not in disruption.on_interrupted_nodes
    ]
    if disruption.calm:
        unplaced = [
            p
            for p in disruption.staying
            if p.pending
            and disruption.now - p.created >= PATIENCE
            and headroom.snapshot.where(p) is None
        ]
        standing = [p for p in disruption.released if p.uid in disruption.on_interrupted_nodes]
        found += [
            undo(disruption, pod, "its replacement found no node, and no deadline presses")
            for pod in standing[: len(unplaced)]
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
    if (headroom.kept or disruption.calm) and fits < len(wave):
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
