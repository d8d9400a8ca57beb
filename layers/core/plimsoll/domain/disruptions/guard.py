"""The standing guard: a PodDisruptionBudget that lets nobody evict a workload before it is replaced.

Others that drain evict as soon as the Eviction API lets them. A budget of `maxUnavailable: 0` makes
them wait, and opens by itself, pod by pod, as released pods are replaced. So it guards only what
can be released: of anything else it would keep every drain from ending. What a budget covers
already is left alone, since the Eviction API refuses pods that two budgets cover.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from plimsoll.domain.actions import Guard, Step, Unguard
from plimsoll.domain.disruptions.releasability import why_never_released
from plimsoll.domain.kubernetes import (
    GUARD,
    KUBE_SYSTEM,
    Budget,
    Pod,
    Ref,
    Workload,
    matches,
    selector_key,
)
from plimsoll.domain.observation import Observation

LONGEST: Final = 253
"""Characters of an object's name. Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardPlan:
    """Which budgets are to come and to go, and how every workload stands that opted in."""

    steps: tuple[Step, ...] = ()
    guarded: tuple[Ref, ...] = ()
    """Those whose budget stands, or is about to be made."""
    left_out: Mapping[Ref, str]
    """Those that opted in and are not guarded, and why."""


def plan_guard(seen: Observation, namespaces: Collection[str]) -> GuardPlan:
    """Decide which budgets of ours are to come and to go. Steady state asks for no change.

    Args:
        seen: one observation of the cluster.
        namespaces: those whose label says that all workloads in them are guarded.
    """
    actions: list[Guard | Unguard] = []
    guarded: list[Ref] = []
    left_out: dict[Ref, str] = {}
    wanted: dict[tuple[str, str], Workload] = {}
    for workload in seen.workloads:
        if not opted_in(workload, namespaces):
            continue
        why = next(_why_not(seen, workload), None)
        if why is not None:
            left_out[workload.ref] = why
            continue
        wanted[workload.ref.namespace, guard_name(workload.ref)] = workload
        guarded.append(workload.ref)
    standing = {(b.ref.namespace, b.ref.name): b for b in seen.budgets if b.guards}
    for place, budget in standing.items():
        owner = wanted.get(place)
        if owner is None or not _is_as_made(budget, owner):
            why = "nobody wants it" if owner is None else "it is not as it was made"
            actions.append(Unguard(budget=budget, reason=why))
    for place, workload in wanted.items():
        if place not in standing:
            actions.append(
                Guard(
                    workload=workload,
                    name=place[1],
                    reason="it opted in, and nobody shall evict its pods before they are replaced",
                )
            )
    return GuardPlan(
        steps=tuple(Step(action=action, nodes=frozenset()) for action in actions),
        guarded=tuple(guarded),
        left_out=left_out,
    )


def opted_in(workload: Workload, namespaces: Collection[str]) -> bool:
    """Whether its owner wants it guarded: what it says itself beats what its namespace says."""
    if workload.ref.namespace == KUBE_SYSTEM:
        return False
    said = workload.labels.get(GUARD)
    return said == "true" if said is not None else workload.ref.namespace in namespaces


def guard_name(ref: Ref) -> str:
    """Return the name of a workload's budget: the same in every run."""
    return f"plimsoll-{ref.kind.lower()}-{ref.name}"[:LONGEST].rstrip("-.")


def guards_of(seen: Observation, pod: Pod) -> list[Budget]:
    """Return the budgets that cover a pod, if all of them are ours."""
    found = seen.budgets_of(pod)
    return [*found] if all(budget.guards for budget in found) else []


def _why_not(seen: Observation, workload: Workload) -> Iterator[str]:
    """Yield why a workload is not guarded although its owner wants it to be."""
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
