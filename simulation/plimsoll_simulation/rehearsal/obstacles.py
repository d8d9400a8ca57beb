"""What keeps workloads from being moved without a gap, and what their owners can change.

Pure: an observation, the nodes that go, the time. How a workload would be moved is asked of the
functions that the drain asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from plimsoll.domain.capacity import StartWindows
from plimsoll.domain.disruptions import (
    ASSUMED_SECONDS,
    WorkloadDisruption,
    disruptions_of,
    kept_of,
    one_node_claims,
    opted_out_on,
    tolerant_workloads,
)
from plimsoll.domain.drain import strategy_of
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
_SHARED_VOLUME: Final = "use a volume that several nodes mount (ReadWriteMany), or a StatefulSet with a volume for each pod"
_HOSTNAMES: Final = ("kubernetes.io/hostname",)
_CURES: Final = {
    "ResourceQuota": "raise the ResourceQuota by one pod of it",
    "selects it by its": "let that select by other labels than the hash of the template",
    "the selector of its": "make it anew with a selector without the hash of the template",
    "anti-affinity by": "make that anti-affinity preferred, or spread by topologySpreadConstraints",
    "cannot make pods": "remove what keeps new pods from being made",
    "several budgets cover": "keep one of these budgets",
}
"""Words of a reason why pods are not released -> what takes it away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """One thing that is in the way of one workload."""

    workload: str
    kind: str
    """single replica, not surged, budget, volume, stop time, slow start, tolerations, opted out or job fails."""
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
    windows = StartWindows(seen=then, now=now)
    found = [
        obstacle
        for disruption in disruptions_of(then, InterruptedNodes.of(then), now)
        for obstacle in (*_of(then, disruption, staying), *_slow_start(disruption, windows))
    ]
    return [*found, *_tolerant(then, records), *_opted_out(then, records)]


def _of(
    seen: Observation, disruption: WorkloadDisruption, staying: Sequence[Node]
) -> Iterator[Obstacle]:
    ref = str(disruption.ref)
    strategy, why = strategy_of(disruption)
    if disruption.ref.kind == OwnerKind.DEPLOYMENT:
        why = next(iter(disruption.not_releasable.values()), why)
    if not strategy.surges:
        if disruption.replicas == 1 or disruption.ref.kind == "Pod":
            change = _change(seen, disruption, why)
            yield Obstacle(workload=ref, kind="single replica", why=why, change=change)
        elif disruption.ref.kind != OwnerKind.STATEFUL_SET:
            change = _change(seen, disruption, why)
            yield Obstacle(workload=ref, kind="not surged", why=why, change=change)
    yield from _budgets(seen, disruption, surges=strategy.surges)
    yield from _volumes(seen, disruption, staying)
    yield from _stop_times(disruption)


def _change(seen: Observation, disruption: WorkloadDisruption, why: str) -> str:
    """Return what would let a workload keep serving while its pods move; empty where its owner can change nothing.

    Args:
        seen: the cluster.
        disruption: of the workload.
        why: why it does not surge.
    """
    workload = disruption.workload
    if workload is None:
        return _OF_OTHERS.get(
            disruption.ref.kind, "let its operator run several pods, with a PodDisruptionBudget"
        )
    match workload.ref.kind:
        case OwnerKind.STATEFUL_SET:
            return "run two replicas or more" if _own_volumes(disruption) else _SHARED_VOLUME
        case OwnerKind.REPLICA_SET:
            return "let a Deployment own its pods"
        case _:
            return ", and ".join(_changes_of_rollouts(seen, disruption, workload, why))


def _changes_of_rollouts(
    seen: Observation, disruption: WorkloadDisruption, workload: Workload, why: str
) -> Iterator[str]:
    """Yield all that keeps a Deployment or an Argo Rollout from making a second pod before the first leaves."""
    if _one_node_volumes(seen, disruption):
        yield _SHARED_VOLUME
    if workload.strategy != "RollingUpdate":
        yield "use the strategy RollingUpdate, if old and new pods may run at once"
    elif _never_surges(workload):
        yield "set maxSurge to 1 or more"
    yield from (change for words, change in _CURES.items() if words in why)


def _one_node_volumes(seen: Observation, disruption: WorkloadDisruption) -> bool:
    return any(True for one in disruption.evictable for _ in one_node_claims(seen, one.pod))


def _own_volumes(disruption: WorkloadDisruption) -> bool:
    """Whether each member of a StatefulSet has volumes of its own: their claims are named after it."""
    return all(
        claim.endswith(f"-{one.pod.name}")
        for one in disruption.evictable
        for claim in one.pod.scheduling.claims
    )


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
                change=f"allow one unavailable pod{_or_surge(seen, disruption)}",
            )


def _or_surge(seen: Observation, disruption: WorkloadDisruption) -> str:
    """Return the other cure, where the owner can choose it: only rollouts of a Deployment surge, and two pods mount its volumes."""
    could = disruption.ref.kind == OwnerKind.DEPLOYMENT and not _one_node_volumes(seen, disruption)
    return ", or let rollouts surge" if could else ""


def _volumes(
    seen: Observation, disruption: WorkloadDisruption, staying: Sequence[Node]
) -> Iterator[Obstacle]:
    there = {node.name for node in staying}
    zones = {node.zone for node in staying}
    zones |= {zone for group in seen.groups if group.addable_nodes for zone in group.zones}
    held = sorted(
        {
            (one.pod.namespace, name)
            for one in disruption.evictable
            for name in one_node_claims(seen, one.pod)
        }
    )
    local = set[str]()
    for key in held:
        nodes = _named(seen.claims[key], _HOSTNAMES) if key in seen.claims else None
        if nodes is not None:
            if not nodes & there:
                local.add(key[1])
                yield Obstacle(
                    workload=str(disruption.ref),
                    kind="volume",
                    why=f"{key[1]} is local to {', '.join(sorted(nodes))}, which goes: no other node can mount it",
                    change="keep its data on a network volume, or its node on on-demand capacity",
                )
            continue
        allowed = _named(seen.claims[key], ZONE_LABELS) if key in seen.claims else None
        if allowed is not None and not allowed & zones:
            yield Obstacle(
                workload=str(disruption.ref),
                kind="volume",
                why=f"{key[1]} is in {', '.join(sorted(allowed))}, where no node stays and none can be added",
                change="keep a node in that zone, or a node group that may grow there",
            )
    if others := [name for _, name in held if name not in local]:
        yield Obstacle(
            workload=str(disruption.ref),
            kind="volume",
            why=f"only one node at a time mounts {', '.join(others)}: a pod stops before the next starts",
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


def _slow_start(disruption: WorkloadDisruption, windows: StartWindows) -> Iterator[Obstacle]:
    window = windows.late(disruption.ref)
    if window is not None and disruption.workload is not None:
        yield Obstacle(
            workload=str(disruption.ref),
            kind="slow start",
            why=window.says,
            change=window.cure,
        )


def _named(claim: Claim, labels: Collection[str]) -> frozenset[str] | None:
    """Return the zones or nodes, by these labels, that a volume can be used in; None: any."""
    found = [
        {v for e in term.expressions if e.key in labels and e.operator == "In" for v in e.values}
        for term in claim.node_terms or ()
    ]
    return frozenset().union(*found) if found and all(found) else None


def _tolerant(seen: Observation, lost: Collection[str]) -> Iterator[Obstacle]:
    for found in tolerant_workloads(seen, lost):
        yield Obstacle(
            workload=str(found.workload), kind="tolerations", why=found.says, change=found.cure
        )


def _opted_out(seen: Observation, lost: Collection[str]) -> Iterator[Obstacle]:
    counts = Counter(
        (str(seen.workload_of(out.pod)), out.why)
        for name in lost
        for out in opted_out_on(seen, seen.node[name])
    )
    for (ref, why), count in sorted(counts.items()):
        change = f"remove {IGNORE}"
        if IGNORE not in why:
            change = "remove spec.nodeName from its template" if "names the node" in why else ""
        yield Obstacle(
            workload=ref,
            kind="opted out",
            why=f"{count} of its pods stay until their instances stop: {why}",
            change=change,
        )
