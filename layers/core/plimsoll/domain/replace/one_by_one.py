"""StatefulSets: one pod at a time, its place made ready first.

A pod of a StatefulSet keeps its name, so its replacement cannot stand beside it; and with volumes
it must find room where they are. Source:
https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#deployment-and-scaling-guarantees
"""

from __future__ import annotations

from plimsoll.domain.actions import Evict
from plimsoll.domain.replace.case import Case, Doomed
from plimsoll.domain.replace.room import Room
from plimsoll.domain.replace.steps import CROWDED, Steps, Way


def _why(case: Case) -> str | None:
    if case.ref.kind == "StatefulSet":
        return "pods of a StatefulSet keep their names and cannot run twice"
    return None


def _ordinal(doomed: Doomed) -> int:
    tail = doomed.pod.name.rpartition("-")[2]
    return int(tail) if tail.isdigit() else 0


def _steps(case: Case, room: Room) -> Steps:
    doomed = sorted(case.doomed, key=_ordinal, reverse=True)
    places = [(d, room.keep(d.pod)) for d in doomed]
    sick = [(d, place) for d, place in places if not d.pod.serving]
    others = [p for p in case.unsettled if all(d.pod.uid != p.uid for d, _ in sick)]
    short = case.serving < case.replicas
    if others or (short and not sick):
        return Steps(waiting="waits until all its other pods are Ready")
    for one, place in sick or places:
        if place is None:
            continue
        held = _why_held(case, one, room) if one.pod.serving else None
        if held is not None:
            return Steps(waiting=held)
        room.crowd.promise(one.pod)
        return Steps(
            actions=(
                Evict(
                    pod=one.pod,
                    reason=f"its place on {place} is ready, and {case.serving} of "
                    f"{case.replicas} serve",
                ),
            )
        )
    return Steps(waiting="waits for room: " + _named(doomed))


def _why_held(case: Case, one: Doomed, room: Room) -> str | None:
    """Say why a pod that serves must not leave yet, though there is room for it."""
    if case.workload is not None and case.workload.rolling_out:
        return "a rollout is under way, and takes its pods one by one itself"
    if case.serving - 1 < case.floor:
        return f"its ready floor of {case.floor} does not allow one less"
    if case.allowed == 0:
        return case.blocked
    return None if room.crowd.holds(one.pod) else CROWDED


def _named(doomed: list[Doomed]) -> str:
    return ", ".join(d.pod.name for d in doomed)


ONE_BY_ONE = Way(name="one by one", surges=False, why=_why, steps=_steps)
