"""What interruptions do to workloads: each with its pods to move, those on their way out, and its ready floor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from plimsoll.domain.disruptions.budgets import ALONE, floor_of, kept_of, replicas_of
from plimsoll.domain.disruptions.guard import guards_of
from plimsoll.domain.disruptions.interruption_end import overdue, why_over
from plimsoll.domain.disruptions.manual_drain import left_to_drain
from plimsoll.domain.disruptions.opt_outs import has_returned, must_leave, never_overruled
from plimsoll.domain.disruptions.releasability import (
    held_on,
    not_releasable,
    one_node_claims,
    releasable,
    why_undone,
)
from plimsoll.domain.disruptions.stop_times import stop_of
from plimsoll.domain.disruptions.workload_disruption import EvictablePod, WorkloadDisruption
from plimsoll.domain.interruptions import as_told, kept_up
from plimsoll.domain.kubernetes import (
    NODE_POOL,
    Node,
    Pod,
    Ref,
    Resources,
    Scheduling,
    why_protected,
)
from plimsoll.domain.observation import (
    DRAIN,
    InterruptedNodes,
    Observation,
    WorkloadTimes,
    is_dead,
    is_gone,
    why_drained,
)
from plimsoll.domain.zones import LEAVING, elsewhere, emptied_nodes, frozen_zones, left_for_zone


def disruptions_of(
    seen: Observation,
    interrupted: InterruptedNodes,
    now: datetime,
    refused: Mapping[str, str] | None = None,
) -> list[WorkloadDisruption]:
    """Return every workload with pods to move or on their way out, or released.

    Args:
        seen: the observation.
        interrupted: the nodes that go.
        now: the time of the observation.
        refused: as in `plan_drain`.
    """
    found: dict[Ref, list[EvictablePod]] = defaultdict(list)
    held: set[str] = set()
    for node in interrupted.nodes:
        interruption = interrupted.interruption[node.name]
        if is_gone(seen, node) or overdue(node, now) or why_over(seen, node, now) is not None:
            continue  # nothing has to leave, or nothing can any more
        hooks = seen.hooks_of(node)
        lasting = kept_up(interruption, hooks)
        interruption = as_told(interruption, hooks, now)
        held |= {pod.uid for pod in held_on(seen, node, now, refused or {})}
        for pod in seen.on_node.get(node.name, ()):
            if pod.uid in held or not must_leave(seen, pod, node):
                continue
            moving = found[seen.workload_of(pod)]
            if pod.deleting is None:
                one = EvictablePod(
                    pod=pod,
                    replica_set=seen.replica_set(pod),
                    interruption=interruption.identity,
                    cordoned=interruption.cordoned,
                    deadline=interruption.deadline,
                    told=interruption.deadline_told,
                    stop=stop_of(seen, pod),
                    overrules=not interruption.guessed and not pod.of_job,
                    obeys=never_overruled(seen, pod),
                    clamps=interruption.exact,
                    returned=has_returned(pod, node),
                    kept_up_until=lasting.deadline if lasting.exact else None,
                    of_node_pool=NODE_POOL in node.labels,
                    guarded=bool(guards_of(seen, pod)),
                )
                if not (one.returned and one.late(pod.created)):  # it came back from its eviction
                    moving.append(one)
    drained = _drained_by_others(seen, interrupted, found)
    leaving = _leaving_zones(seen, interrupted, found, now, refused or {})
    for pod in seen.pods:
        if pod.released and pod.deleting is None:
            found.setdefault(seen.workload_of(pod), [])
    claimed: dict[Ref, Resources] = defaultdict(Resources)
    return [
        _disruption(
            seen,
            interrupted,
            drained,
            leaving,
            held,
            ref,
            evictable,
            now,
            claimed,
            (refused or {}).get(str(ref)),
        )
        for ref, evictable in sorted(found.items())
    ]


def _drained_by_others(
    seen: Observation, interrupted: InterruptedNodes, found: dict[Ref, list[EvictablePod]]
) -> frozenset[str]:
    """Add guarded pods on nodes that somebody else empties, and return the uids of all such pods."""
    drained: set[str] = set()
    for node in seen.nodes:
        if node.name in interrupted.names or why_drained(node, seen.policy) is None:
            continue
        for pod in seen.on_node.get(node.name, ()):
            if not _is_moved(seen, pod, node) or not guards_of(seen, pod):
                continue
            drained.add(pod.uid)
            moving = found[seen.workload_of(pod)]
            if pod.deleting is None:
                replica_set = seen.replica_set(pod)
                moving.append(
                    EvictablePod(
                        pod=pod,
                        replica_set=replica_set,
                        interruption=DRAIN,
                        deadline=None,
                        stop=stop_of(seen, pod),
                        guarded=True,
                        notified=False,
                    )
                )
    return frozenset(drained)


def _leaving_zones(
    seen: Observation,
    interrupted: InterruptedNodes,
    found: dict[Ref, list[EvictablePod]],
    now: datetime,
    refused: Mapping[str, str],
) -> Mapping[str, Pod]:
    """Add pods that a zonal shift lets leave their zone, and return them by uid as they are planned.

    One that came after the shift began had no better place. One that was released leaves whosever turn it is.
    """
    emptied, zones = emptied_nodes(seen, now), frozen_zones(seen)
    known: dict[int, Scheduling] = {}
    leaving: dict[str, Pod] = {}
    for node in seen.nodes if zones else ():
        if node.zone not in zones or node.name in interrupted.names:
            continue
        since = emptied.get(node.name)
        for pod in seen.on_node.get(node.name, ()):
            if not _is_moved(seen, pod, node):
                continue
            old = since is not None and pod.created < since and pod.deleting is None
            if left_for_zone(pod) or (
                old and why_protected(pod, node, now) is None and releasable(seen, pod, refused)
            ):
                moved = leaving[pod.uid] = elsewhere(pod, node.zone, known)
                moving = found[seen.workload_of(pod)]
                if pod.deleting is None:
                    moving.append(
                        EvictablePod(
                            pod=moved,
                            replica_set=seen.replica_set(pod),
                            interruption=LEAVING,
                            deadline=None,
                            stop=stop_of(seen, pod),
                            released_only=True,
                            notified=False,
                        )
                    )
    return leaving


def _is_moved(seen: Observation, pod: Pod, node: Node) -> bool:
    """Whether a pod leaves a node that no deadline takes: not one that came after its cordon."""
    return must_leave(seen, pod, node) and not has_returned(pod, node)


def by_node(
    disruptions: Iterable[WorkloadDisruption],
) -> Mapping[str, Sequence[WorkloadDisruption]]:
    """Return the disruptions that have pods on a node, by its name."""
    found: dict[str, list[WorkloadDisruption]] = defaultdict(list)
    for disruption in disruptions:
        for name in {pod.node for pod in disruption.pods if pod.node is not None}:
            found[name].append(disruption)
    return found


def _disruption(  # noqa: PLR0913, PLR0917 - what a disruption is made of, each part named
    seen: Observation,
    interrupted: InterruptedNodes,
    drained: Collection[str],
    leaving: Mapping[str, Pod],
    held: Collection[str],
    ref: Ref,
    evictable: list[EvictablePod],
    now: datetime,
    claimed: dict[Ref, Resources],
    refused: str | None,
) -> WorkloadDisruption:
    workload = seen.workload.get(ref)
    kept = dict(not_releasable(seen, workload, evictable, claimed, refused))
    evictable = [d for d in evictable if not (d.released_only and d.pod.uid in kept)]
    staying = leaving.keys() & kept.keys()
    pods = tuple(leaving.get(p.uid, p) for p in seen.of_workload.get(ref, ()))
    replicas = replicas_of(seen, ref)
    volume = replicas == 1 and any(name for p in pods for name in one_node_claims(seen, p))
    by_budgets = max(kept_of(seen, ref, replicas).values(), default=0)
    covering = {p.uid: budgets for p in pods if (budgets := seen.budgets_of(p))}
    return WorkloadDisruption(
        ref=ref,
        workload=workload,
        pods=pods,
        evictable=tuple(
            sorted(
                evictable,
                key=lambda d: (interrupted.turn.get(d.pod.node or "", len(seen.nodes)), d.pod.name),
            )
        ),
        on_interrupted_nodes=frozenset(
            p.uid
            for p in pods
            if (p.node in interrupted.names and p.uid not in held)
            or p.released_for_placement
            or p.uid in drained
            or (p.uid in leaving and p.uid not in staying)
        ),
        returned=frozenset(
            p.uid
            for p in pods
            if p.node in interrupted.names and p.uid not in held
            if has_returned(p, seen.node[p.node or ""])
        ),
        dead=frozenset(p.uid for p in pods if is_dead(seen, p)),
        replicas=replicas,
        uncounted=ref in seen.uncounted and ref.kind not in ALONE,
        floor=0 if volume else floor_of(seen, ref, workload, replicas, by_budgets),
        kept=by_budgets,
        covering=covering,
        not_releasable=kept,
        undone={p.uid: why for p in pods if p.released and (why := why_undone(seen, workload, p))},
        left_to_drain=frozenset(p.uid for p in pods if left_to_drain(seen, p)),
        provisioned=any(
            one.interruption in {DRAIN, LEAVING}
            and NODE_POOL in seen.node[one.pod.node or ""].labels
            for one in evictable
        ),
        current=seen.current.get(ref),
        times=seen.times.get(ref, WorkloadTimes()),
        now=now,
    )
