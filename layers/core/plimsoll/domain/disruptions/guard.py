"""The standing guard: a PodDisruptionBudget that lets nobody evict a workload before it is replaced.

Others that drain evict as soon as the Eviction API lets them. A budget of `maxUnavailable: 0` makes
them wait, and opens by itself, pod by pod, as released pods are replaced. So it guards only what
can be released: of anything else it would keep every drain from ending. What a budget covers
already is left alone, since the Eviction API refuses pods that two budgets cover.

A guard at a warning has its budget only while a node of its workload has an open notice, so that in
calm times consolidation and scale-down find none. The drain makes it, and placement deletes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from plimsoll.domain.actions import Guard, Step, Unguard
from plimsoll.domain.disruptions.releasability import why_never_released
from plimsoll.domain.interruptions import Response
from plimsoll.domain.kubernetes import (
    GUARD,
    GUARD_AT_WARNING,
    KUBE_SYSTEM,
    Budget,
    Pod,
    Ref,
    Workload,
    matches,
    selector_key,
)
from plimsoll.domain.observation import Observation

LONGEST_NAME_CHARACTERS: Final = 253
"""Characters of an object's name. Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardPlan:
    """Which budgets are to come and to go, and how every workload stands that opted in."""

    steps: tuple[Step, ...] = ()
    guarded: tuple[Ref, ...] = ()
    """Those whose budget stands, or is about to be made."""
    calm: tuple[Ref, ...] = ()
    """Those that are guarded at a warning, while no node of theirs has one."""
    left_out: Mapping[Ref, str]
    """Those that opted in and are not guarded, and why."""


def plan_guard(seen: Observation, namespaces: Mapping[str, str]) -> GuardPlan:
    """Decide which budgets of ours are to come and to go. Steady state asks for no change.

    Args:
        seen: one observation of the cluster.
        namespaces: what their labels say of all workloads in them, by name.
    """
    actions: list[Guard | Unguard] = []
    calm: list[Ref] = []
    left_out: dict[Ref, str] = {}
    wanted: dict[tuple[str, str], Workload] = {}
    warned = _warned(seen)
    for workload in seen.workloads:
        said = _said(workload, namespaces)
        if said not in {"true", GUARD_AT_WARNING}:
            continue
        why = next(_why_not(seen, workload), None)
        if why is not None:
            left_out[workload.ref] = why
        elif said == "true" or workload.ref in warned:
            wanted[_place(workload.ref)] = workload
        else:
            calm.append(workload.ref)
    standing = _standing(seen)
    for place, budget in standing.items():
        owner = wanted.get(place)
        if owner is None or not _is_as_made(budget, owner):
            why = "nobody wants it" if owner is None else "it is not as it was made"
            actions.append(Unguard(budget=budget, reason=why))
    # One that is not as it was made is deleted here, and made anew by the next plan: its name is free only then.
    actions += [_guard(each) for place, each in wanted.items() if place not in standing]
    return GuardPlan(
        steps=tuple(Step(action=action, nodes=frozenset()) for action in actions),
        guarded=tuple(workload.ref for workload in wanted.values()),
        calm=tuple(calm),
        left_out=left_out,
    )


def guards_at_warning(seen: Observation) -> Iterator[Guard]:
    """Yield the budgets to make at once, of workloads with pods on nodes with an open notice."""
    standing = _standing(seen)
    for ref in sorted(_warned(seen)):
        workload = seen.workload.get(ref)
        if (
            workload is not None
            and _said(workload, seen.guarding) == GUARD_AT_WARNING
            and _place(ref) not in standing
            and next(_why_not(seen, workload), None) is None
        ):
            yield _guard(workload)


def _guard(workload: Workload) -> Guard:
    reason = "it opted in, and nobody shall evict its pods before they are replaced"
    return Guard(workload=workload, name=guard_name(workload.ref), reason=reason)


def _warned(seen: Observation) -> frozenset[Ref]:
    """Return the workloads of pods on nodes with an open notice, those on advice that wait for their turn too.

    Not where the owner has pods stay: nothing would open the budget before whoever drains gives up.
    """
    return frozenset(
        seen.workload_of(pod)
        for node in seen.nodes
        if node.interruption is not None
        and node.interruption.phase != "closed"
        and seen.policy.response(node.interruption) is Response.MOVE
        for pod in seen.on_node.get(node.name, ())
    )


def _said(workload: Workload, namespaces: Mapping[str, str]) -> str | None:
    """Return how its owner wants it guarded: what it says itself beats what its namespace says."""
    if workload.ref.namespace == KUBE_SYSTEM:
        return None
    return workload.labels.get(GUARD, namespaces.get(workload.ref.namespace))


def _standing(seen: Observation) -> Mapping[tuple[str, str], Budget]:
    return {(b.ref.namespace, b.ref.name): b for b in seen.budgets if b.guards}


def _place(ref: Ref) -> tuple[str, str]:
    """Return the namespace and name of a workload's budget."""
    return ref.namespace, guard_name(ref)


def guard_name(ref: Ref) -> str:
    """Return the name of a workload's budget: the same in every run."""
    return f"plimsoll-{ref.kind.lower()}-{ref.name}"[:LONGEST_NAME_CHARACTERS].rstrip("-.")


def guards_of(seen: Observation, pod: Pod) -> list[Budget]:
    """Return the budgets that cover a pod, if all of them are ours."""
    found = seen.budgets_of(pod)
    return [*found] if all(budget.guards for budget in found) else []


def _why_not(seen: Observation, workload: Workload) -> Iterator[str]:
    """Yield why a workload is not guarded although its owner wants it to be."""
    if workload.unresolved is not None:
        yield workload.unresolved
    pods = [p for p in seen.of_workload.get(workload.ref, ()) if p.deleting is None]
    pod = next((p for p in pods if not p.released), None)
    labels = workload.selector.labels if pod is None else pod.labels
    for budget in seen.budgets_in.get(workload.ref.namespace, ()):
        if not budget.guards and matches(budget.selector, labels):
            yield f"its own budget {budget.ref.name} covers it"
    if pod is not None and (why := why_never_released(seen, workload, pod)) is not None:
        yield f"its pods cannot be replaced before they leave: {why}"
    elif pod is None and workload.ref.kind not in {"Deployment", "Rollout"}:
        yield f"a {workload.ref.kind} is never replaced before it leaves"


def _is_as_made(budget: Budget, workload: Workload) -> bool:
    return budget.max_unavailable == 0 and selector_key(budget.selector) == selector_key(
        workload.selector
    )
