"""What interruptions do to workloads: each with its pods to move, those on their way out, and its ready floor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

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
from plimsoll.domain.disruptions.workload_disruption import (
    BudgetRule,
    Cause,
    Departure,
    EvictablePod,
    WorkloadDisruption,
)
from plimsoll.domain.interruptions import Interruption, as_told, kept_up
from plimsoll.domain.kubernetes import (
    NODE_POOL,
    Node,
    Pod,
    Ref,
    Resources,
    Scheduling,
    Workload,
    why_protected,
)
from plimsoll.domain.observation import (
    DRAIN,
    InterruptedNodes,
    Observation,
    is_dead,
    is_gone,
    why_drained,
)
from plimsoll.domain.zones import LEAVING, elsewhere, emptied_nodes, frozen_zones, left_for_zone

START: Final = timedelta(seconds=30)
"""What a replacement that has a node is reckoned to take until it serves, where nobody saw it."""


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
        departure = _departure(seen, node, interruption, now)
        held |= {pod.uid for pod in held_on(seen, node, now, refused or {})}
        for pod in seen.on_node.get(node.name, ()):
            if pod.uid in held or not must_leave(seen, pod, node):
                continue
            moving = found[seen.workload_of(pod)]
            if pod.deleting is None:
                one = EvictablePod(
                    pod=pod,
                    replica_set=seen.replica_set(pod),
                    departure=departure,
                    stop=stop_of(seen, pod),
                    budget=_budget_rule(seen, pod, interruption),
                    returned=has_returned(pod, node),
                )
                if not (one.returned and one.late(pod.created)):  # it came back from its eviction
                    moving.append(one)
    # Both leave interrupted nodes out: the pods there are found already.
    leaving = _leaving_zones(seen, interrupted, found, now, refused or {})
    drained = _drained_by_others(seen, interrupted, leaving, found)
    # Last, and without pods to move: a release whose node stays has to be found, so that it is undone.
    for pod in seen.pods:
        if pod.released and pod.deleting is None:
            found.setdefault(seen.workload_of(pod), [])
    builder = _Builder(
        seen=seen,
        interrupted=interrupted,
        now=now,
        refused=refused or {},
        held=held,
        drained=drained,
        leaving=leaving,
    )
    # By name, since each claims of the quotas what the ones before it have left.
    return [builder.build(ref, evictable) for ref, evictable in sorted(found.items())]


def _departure(
    seen: Observation, node: Node, interruption: Interruption, now: datetime
) -> Departure:
    """Return why and by when an interrupted node is left."""
    hooks = seen.hooks_of(node)
    # Two deadlines of one node: as its lifecycle hooks stand now, and once the heartbeats of this plan are accepted.
    told, lasting = as_told(interruption, hooks, now), kept_up(interruption, hooks)
    return Departure(
        interruption=told.identity,
        cordoned=told.cordoned,
        deadline=told.deadline,
        noticed=told.deadline_told,
        exact=told.exact,
        kept_up_until=lasting.deadline if lasting.exact else None,
        of_node_pool=NODE_POOL in node.labels,
    )


def _budget_rule(seen: Observation, pod: Pod, interruption: Interruption) -> BudgetRule:
    if never_overruled(seen, pod):
        return BudgetRule.KEPT_BY_OWNER
    return BudgetRule.KEPT if interruption.guessed or pod.of_job else BudgetRule.OVERRULED


def _drained_by_others(
    seen: Observation,
    interrupted: InterruptedNodes,
    leaving: Collection[str],
    found: dict[Ref, list[EvictablePod]],
) -> frozenset[str]:
    """Add guarded pods on nodes that somebody else empties, and return the uids of all such pods.

    One that was released to leave its zone is found already.
    """
    drained: set[str] = set()
    for node in seen.nodes:
        if node.name in interrupted.names or why_drained(node, seen.policy) is None:
            continue
        for pod in seen.on_node.get(node.name, ()):
            if not _is_moved(seen, pod, node) or not guards_of(seen, pod):
                continue
            drained.add(pod.uid)
            moving = found[seen.workload_of(pod)]
            if pod.deleting is None and pod.uid not in leaving:
                moving.append(
                    EvictablePod(
                        pod=pod,
                        replica_set=seen.replica_set(pod),
                        departure=Departure(
                            cause=Cause.OTHER_DRAIN,
                            interruption=DRAIN,
                            of_node_pool=NODE_POOL in node.labels,
                        ),
                        stop=stop_of(seen, pod),
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
                            departure=Departure(
                                cause=Cause.ZONAL_SHIFT,
                                interruption=LEAVING,
                                of_node_pool=NODE_POOL in node.labels,
                            ),
                            stop=stop_of(seen, pod),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Builder:
    """Makes the disruption of one workload after the other."""

    seen: Observation
    interrupted: InterruptedNodes
    now: datetime
    refused: Mapping[str, str]
    held: Collection[str]
    """Uids of the pods that the policy leaves on interrupted nodes for the time being."""
    drained: Collection[str]
    """Uids of the guarded pods on nodes that somebody else empties."""
    leaving: Mapping[str, Pod]
    """Uid of a pod that leaves its zone -> the pod as it is planned."""
    claimed: dict[Ref, Resources] = field(default_factory=lambda: defaultdict(Resources))
    """What replacements take of each ResourceQuota; it grows with each workload."""

    def build(self, ref: Ref, evictable: list[EvictablePod]) -> WorkloadDisruption:
        """Return the disruption of a workload, whose replacements claim their quota."""
        seen, leaving = self.seen, self.leaving
        workload = seen.workload.get(ref)
        # First: which pods may be released says which of those in a shifted zone leave at all.
        kept = dict(
            not_releasable(seen, workload, evictable, self.claimed, self.refused.get(str(ref)))
        )
        evictable = [
            d
            for d in evictable
            if not (d.departure.cause is Cause.ZONAL_SHIFT and d.pod.uid in kept)
        ]
        pods = tuple(leaving.get(p.uid, p) for p in seen.of_workload.get(ref, ()))
        here = frozenset(
            p.uid for p in pods if p.node in self.interrupted.names and p.uid not in self.held
        )
        away = here | {
            p.uid
            for p in pods
            if p.released_for_placement
            or p.uid in self.drained
            or (p.uid in leaving and p.uid not in kept)
        }
        replicas = replicas_of(seen, ref)
        by_budgets = max(kept_of(seen, ref, replicas).values(), default=0)
        return WorkloadDisruption(
            ref=ref,
            workload=workload,
            pods=pods,
            evictable=tuple(sorted(evictable, key=self._turn)),
            on_interrupted_nodes=away,
            returned=frozenset(
                p.uid for p in pods if p.uid in here and has_returned(p, seen.node[p.node or ""])
            ),
            dead=frozenset(p.uid for p in pods if is_dead(seen, p)),
            replicas=replicas,
            uncounted=ref in seen.uncounted and ref.kind not in ALONE,
            floor=self._floor(ref, workload, pods, replicas, by_budgets),
            kept=by_budgets,
            covering={p.uid: budgets for p in pods if (budgets := seen.budgets_of(p))},
            not_releasable=kept,
            undone={
                p.uid: why
                for p in pods
                if p.released and (why := self._why_undone(workload, p, away)) is not None
            },
            current=seen.current.get(ref),
            start=self._start(ref),
            now=self.now,
        )

    def _turn(self, one: EvictablePod) -> tuple[int, str]:
        """The most urgent node first, and by name on each of them."""
        turn = self.interrupted.turn.get(one.pod.node or "", len(self.seen.nodes))
        return turn, one.pod.name

    def _floor(
        self,
        ref: Ref,
        workload: Workload | None,
        pods: Sequence[Pod],
        replicas: int,
        by_budgets: int,
    ) -> int:
        """None of a single pod whose volume only one node can have: its successor waits for it to stop."""
        if replicas == 1 and any(True for p in pods for _ in one_node_claims(self.seen, p)):
            return 0
        return floor_of(self.seen, ref, workload, replicas, by_budgets)

    def _why_undone(self, workload: Workload | None, pod: Pod, away: Collection[str]) -> str | None:
        """Say why a released pod must not stay so: its owner changed something, or its node stays."""
        if pod.uid in away or left_to_drain(self.seen, pod):
            return why_undone(self.seen, workload, pod)
        return "its node is not interrupted any more"

    def _start(self, ref: Ref) -> timedelta:
        """Never less than where nobody saw it: the pod in whose place it comes may have to stop first."""
        times = self.seen.times.get(ref)
        if times is None or times.start is None:
            return START
        return max(START, timedelta(seconds=times.start.p95_seconds))
