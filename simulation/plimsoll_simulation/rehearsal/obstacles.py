"""What keeps workloads from being moved without a gap, and what their owners can change.

Pure: an observation, the nodes that go, the time. How a workload would be moved is asked of the
functions that the drain asks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from plimsoll.domain.disruptions import (
    ASSUMED_SECONDS,
    WorkloadDisruption,
    disruptions_of,
    kept_of,
    one_node_claims,
    opted_out_on,
)
from plimsoll.domain.drain import way_of
from plimsoll.domain.interruptions import actionable, marked, merge
from plimsoll.domain.kubernetes import (
    IGNORE,
    STOP_SECONDS,
    ZONE_LABELS,
    Claim,
    Node,
    OwnerKind,
    Workload,
    resolve_count,
)
from plimsoll.domain.notices import SpotInterruption
from plimsoll.domain.observation import InterruptedNodes, Observation

_OF_OTHERS: Final = {
    "Pod": "let a Deployment own it",
    OwnerKind.JOB: "let it write checkpoints, or keep it on on-demand nodes",
}
"""Kind of what is no workload of replicas -> what its owner can change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """One thing that is in the way of one workload."""

    workload: str
    kind: str
    """single replica, not surged, budget, volume, stop time, opted out or job fails."""
    why: str
    change: str
    """What its owner can change; empty where it is as it must be."""


def obstacles(seen: Observation, lost: Collection[Node], now: datetime) -> Sequence[Obstacle]:
    """Return what is in the way of the workloads on these nodes, by workload."""
    records = {}
    for node in lost:
        notice = SpotInterruption(
            instance=node.instance or node.uid,
            time=now,
            account="",
            region=None,
            id="rehearsal",
            action="terminate",
        )
        decision = actionable(notice)
        merged = merge(None, notice, node=node.name, launched=None, decision=decision)
        records[node.name] = marked(merged, cordoned=now)
    then = seen.with_interruptions(records)
    staying = [node for node in then.nodes if node.staying]
    found = [
        obstacle
        for disruption in disruptions_of(then, InterruptedNodes.of(then), now)
        for obstacle in _of(then, disruption, staying)
    ]
    return [*found, *_opted_out(then, records)]


def _of(
    seen: Observation, disruption: WorkloadDisruption, staying: Sequence[Node]
) -> Iterator[Obstacle]:
    ref = str(disruption.ref)
    way, why = way_of(disruption)
    if disruption.ref.kind == OwnerKind.DEPLOYMENT:
        why = next(iter(disruption.not_releasable.values()), why)
    if not way.surges:
        if disruption.replicas == 1 or disruption.ref.kind == "Pod":
            yield Obstacle(workload=ref, kind="single replica", why=why, change=_change(disruption))
        elif disruption.ref.kind != OwnerKind.STATEFUL_SET:
            yield Obstacle(workload=ref, kind="not surged", why=why, change=_change(disruption))
    yield from _budgets(seen, disruption, surges=way.surges)
    yield from _volumes(seen, disruption, staying)
    yield from _stop_times(disruption)


def _change(disruption: WorkloadDisruption) -> str:
    """Return what would let a workload keep serving while its pods move."""
    workload = disruption.workload
    if workload is None:
        return _OF_OTHERS.get(
            disruption.ref.kind, "let its operator run several pods, with a PodDisruptionBudget"
        )
    if workload.ref.kind == OwnerKind.DEPLOYMENT and workload.strategy != "RollingUpdate":
        return "use the strategy RollingUpdate, if old and new pods may run at once"
    if workload.ref.kind == OwnerKind.DEPLOYMENT and _never_surges(workload):
        return "set maxSurge to 1 or more"
    return "run two replicas or more" if disruption.replicas == 1 else ""


def _never_surges(workload: Workload) -> bool:
    return resolve_count(workload.max_surge, workload.replicas, round_up=True) < 1


def _budgets(
    seen: Observation, disruption: WorkloadDisruption, *, surges: bool
) -> Iterator[Obstacle]:
    ref, names = str(disruption.ref), [budget.ref.name for budget in disruption.budgets]
    if len(names) > 1:
        yield Obstacle(
            workload=ref,
            kind="budget",
            why=f"{', '.join(names)} cover the same pods, which the Eviction API refuses",
            change="keep one of them",
        )
        return
    for budget, keeps in kept_of(seen, disruption.ref, disruption.replicas).items():
        if keeps >= disruption.replicas and not surges:
            yield Obstacle(
                workload=ref,
                kind="budget",
                why=f"{budget.name} allows no disruption: Plimsoll overrules it at the eviction deadline",
                change="allow one unavailable pod, or let rollouts surge",
            )


def _volumes(
    seen: Observation, disruption: WorkloadDisruption, staying: Sequence[Node]
) -> Iterator[Obstacle]:
    zones = {node.zone for node in staying}
    zones |= {zone for group in seen.groups if group.headroom for zone in group.zones}
    held = sorted(
        {
            (one.pod.namespace, name)
            for one in disruption.evictable
            for name in one_node_claims(seen, one.pod)
        }
    )
    for key in held:
        allowed = _zones(seen.claims[key]) if key in seen.claims else None
        if allowed is not None and not allowed & zones:
            yield Obstacle(
                workload=str(disruption.ref),
                kind="volume",
                why=f"{key[1]} is in {', '.join(sorted(allowed))}, where no node stays and none can be added",
                change="keep a node in that zone, or a node group that may grow there",
            )
    if held:
        yield Obstacle(
            workload=str(disruption.ref),
            kind="volume",
            why=f"only one node at a time mounts {', '.join(name for _, name in held)}: a pod stops before the next starts",
            change="",
        )


def _stop_times(disruption: WorkloadDisruption) -> Iterator[Obstacle]:
    """Name a grace period of which nobody knows how much is needed."""
    unstated = [
        one.pod.grace_seconds
        for one in disruption.evictable
        if not one.stop.known and one.pod.grace_seconds > ASSUMED_SECONDS
    ]
    if unstated:
        yield Obstacle(
            workload=str(disruption.ref),
            kind="stop time",
            why=f"the stop time within the grace period of {max(unstated)} s is unknown",
            change=f"annotate the pods with {STOP_SECONDS}",
        )


def _zones(claim: Claim) -> frozenset[str] | None:
    """Return the zones that a volume can be used in; None: any."""
    zones = [
        {
            v
            for e in term.expressions
            if e.key in ZONE_LABELS and e.operator == "In"
            for v in e.values
        }
        for term in claim.node_terms or ()
    ]
    return frozenset().union(*zones) if zones and all(zones) else None


def _opted_out(seen: Observation, lost: Collection[str]) -> Iterator[Obstacle]:
    counts: dict[str, int] = {}
    for name in lost:
        for out in opted_out_on(seen, seen.node[name]):
            ref = str(seen.workload_of(out.pod))
            counts[ref] = counts.get(ref, 0) + 1
    for ref, count in sorted(counts.items()):
        yield Obstacle(
            workload=ref,
            kind="opted out",
            why=f"{count} of its pods stay until their instances stop",
            change=f"remove {IGNORE}",
        )
