"""StatefulSets: one pod at a time, its place made ready first.

A pod of a StatefulSet keeps its name, so its replacement cannot stand beside it; and with volumes
it must find headroom where they are. Source:
https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#deployment-and-scaling-guarantees
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from plimsoll.domain.actions import Evict
from plimsoll.domain.capacity import replacement_of
from plimsoll.domain.observation import Observation
from plimsoll.domain.pods import OwnerKind, Pod
from plimsoll.domain.replace.disruption import EvictablePod, WorkloadDisruption
from plimsoll.domain.replace.headroom import Headroom
from plimsoll.domain.replace.steps import CONTENDED, Steps, Way


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
        mate, taken = pods[0], {pod.name for pod in pods}
        names = (f"{ref.name}-{ordinal}" for ordinal in range(len(pods) + 1))
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


def _ordinal(evictable: EvictablePod) -> int:
    tail = evictable.pod.name.rpartition("-")[2]
    return int(tail) if tail.isdecimal() and tail.isascii() else 0


def _steps(disruption: WorkloadDisruption, headroom: Headroom) -> Steps:
    evictable = sorted(disruption.evictable, key=_ordinal, reverse=True)
    places = [(d, headroom.reserve(d.pod)) for d in evictable]
    sick = [(d, place) for d, place in places if not d.pod.serving]
    others = [p for p in disruption.unsettled if all(d.pod.uid != p.uid for d, _ in sick)]
    short = disruption.serving < disruption.replicas
    if (others or (short and not sick)) and not disruption.pressed:
        return Steps(waiting="waits until all its other pods are Ready")
    for one, place in sick or places:
        if place is None:
            continue
        held = _why_held(disruption, one, headroom) if one.pod.serving else None
        if held is not None:
            return Steps(waiting=held)
        headroom.contention.promise(one.pod)
        return Steps(
            actions=(
                Evict(
                    pod=one.pod,
                    reason=f"its place on {place} is ready, and {disruption.serving} of "
                    f"{disruption.replicas} serve",
                ),
            )
        )
    return Steps(waiting="waits for headroom: " + _named(evictable))


def _why_held(disruption: WorkloadDisruption, one: EvictablePod, headroom: Headroom) -> str | None:
    """Say why a pod that serves must not leave yet, though there is headroom for it."""
    if disruption.workload is not None and disruption.workload.rolling_out:
        return "a rollout is under way, and takes its pods one by one itself"
    if disruption.serving - 1 < disruption.floor and not disruption.pressed:
        return f"its ready floor of {disruption.floor} does not allow one less"
    if disruption.allowed == 0:
        return disruption.blocked
    return None if headroom.contention.holds(one.pod) else CONTENDED


def _named(evictable: list[EvictablePod]) -> str:
    return ", ".join(d.pod.name for d in evictable)


ONE_BY_ONE = Way(name="one by one", surges=False, why=_why, steps=_steps)
