"""Which nodes are interrupted, and which pods of which workloads must leave them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final, Self

from plimsoll.domain.disruptions.guard import guards_of
from plimsoll.domain.disruptions.known_stops import stop_of
from plimsoll.domain.disruptions.manual_drain import left_to_drain
from plimsoll.domain.disruptions.releasability import (
    one_node_claims,
    why_not_released,
    why_undone,
)
from plimsoll.domain.disruptions.workload_disruption import (
    PATIENCE,
    EvictablePod,
    WorkloadDisruption,
)
from plimsoll.domain.interruptions import ADVICE, NEVER, SCALE_DOWN, Interruption, in_this_life
from plimsoll.domain.interruptions.lifecycle_hooks import as_told
from plimsoll.domain.interruptions.response_policy import Response
from plimsoll.domain.kubernetes.floors import budget_keeps, ready_floor
from plimsoll.domain.kubernetes.names import (
    IGNORE,
    NEVER_OVERRULED,
    NODE_POOL,
    OVERRULE_BUDGETS,
)
from plimsoll.domain.kubernetes.nodes import Node
from plimsoll.domain.kubernetes.pods import (
    Pod,
    Ref,
    Scheduling,
)
from plimsoll.domain.kubernetes.quantities import Resources
from plimsoll.domain.kubernetes.workloads import Budget, Workload
from plimsoll.domain.notices import RebalanceRecommendation
from plimsoll.domain.observation.external_drains import DRAIN, why_drained
from plimsoll.domain.observation.observation import Observation
from plimsoll.domain.observation.observed_times import WorkloadTimes
from plimsoll.domain.scheduling.node_rules import UNSCHEDULABLE, tolerated
from plimsoll.domain.zones.zonal_shifts import (
    LEAVING,
    elsewhere,
    emptied_nodes,
    frozen_zones,
    left_for_zone,
)

_STAYS_PUT = {"DaemonSet", "Node"}
"""Owners whose pods belong to the node and end with it: daemons, and mirrors of static pods."""

_ALONE = {"Pod", "Job"}
"""What has no pods that must serve side by side."""

OVERDUE: Final = timedelta(minutes=10)
"""How long after its deadline an instance that still runs is believed to be interrupted."""

EXPIRY: Final = timedelta(hours=1)
"""How long a node stays cordoned on a recommendation alone: so no more nodes are than may be in an hour."""


@dataclass(frozen=True)
class InterruptedNodes:
    """The nodes with an open interruption, in order of urgency. Not slotted: look-ups are kept.

    The earliest deadline comes first, and then where the fewest pods wait for a replacement: what is
    begun is finished, and as many nodes as can be are empty in time.
    """

    nodes: tuple[Node, ...]

    @classmethod
    def of(cls, seen: Observation) -> Self:
        """Find them by the records that stand on the nodes themselves."""

        def urgency(node: Node) -> tuple[datetime, int, str]:
            deadline = None if node.interruption is None else node.interruption.deadline
            waiting = (p for p in seen.on_node.get(node.name, ()) if leaves(p) and not p.released)
            return deadline or NEVER, sum(p.deleting is None for p in waiting), node.name

        return cls(tuple(sorted(filter(_is_interrupted, seen.nodes), key=urgency)))

    @cached_property
    def turn(self) -> Mapping[str, int]:
        """By the name of the node: its place in the order of urgency."""
        return {node.name: turn for turn, node in enumerate(self.nodes)}

    @cached_property
    def names(self) -> frozenset[str]:
        """Their names."""
        return frozenset(n.name for n in self.nodes)

    @cached_property
    def interruption(self) -> Mapping[str, Interruption]:
        """By the name of the node."""
        return {n.name: found for n in self.nodes if (found := n.interruption)}

    def nodes_of(self, disruption: WorkloadDisruption) -> frozenset[str]:
        """Return the interrupted nodes on which a disruption still has pods; all where none is left."""
        here = frozenset(p.node for p in disruption.pods if p.node in self.names)
        others = frozenset(one.pod.node for one in disruption.evictable if one.pod.node)
        return here or others or self.names


def _is_interrupted(node: Node) -> bool:
    """Whether its pods move. Those of a node that waits for its turn do not."""
    found = node.interruption
    if found is None or found.phase == "closed":
        return False
    patient = {*ADVICE, SCALE_DOWN}
    return found.cordoned is not None or any(n.kind not in patient for n in found.notices)


def leaves(pod: Pod) -> bool:
    """Whether a pod has to leave an interrupted node, and counts until it has."""
    return not (pod.finished or pod.mirror or (pod.owner and pod.owner.kind in _STAYS_PUT))


def ignored(seen: Observation, pod: Pod) -> bool:
    """Whether its owner opted out, on the pod or on the workload."""
    return any(marks.get(IGNORE) == "true" for marks in _marks(seen, pod))


def _marks(seen: Observation, pod: Pod) -> Iterator[Mapping[str, str]]:
    """Yield the labels and annotations by which the owner of a pod says something."""
    yield from (pod.labels, pod.annotations)
    owner = seen.owner(pod)
    if owner is not None and (workload := seen.workload.get(owner)) is not None:
        yield from (workload.labels, workload.annotations)


def _never_overruled(seen: Observation, pod: Pod) -> bool:
    """Whether its owner lets nobody delete it past its budget: for the cluster, the namespace, the workload or the pod."""
    if seen.policy.obeys_budgets or pod.namespace in seen.obeying:
        return True
    return any(marks.get(OVERRULE_BUDGETS) == NEVER_OVERRULED for marks in _marks(seen, pod))


def must_leave(seen: Observation, pod: Pod, node: Node) -> bool:
    """Whether a pod has to leave this node, which is interrupted, and is ours to move."""
    return leaves(pod) and not ignored(seen, pod) and not _chose(pod, node)


def _chose(pod: Pod, node: Node) -> bool:
    """Whether a pod came although its node was cordoned: it tolerates that, and would come again.

    Evicting it would send it in circles, once a second, until the instance goes.
    """
    cordoned = None if node.interruption is None else node.interruption.cordoned
    if cordoned is None or pod.created <= cordoned:
        return False
    return tolerated(UNSCHEDULABLE, pod.scheduling.tolerations)


def left_on(seen: Observation, node: Node) -> list[Pod]:
    """Pods that must leave and have not, the stopping ones too."""
    return [pod for pod in seen.on_node.get(node.name, ()) if must_leave(seen, pod, node)]


def left_to_pod_gc(node: Node, pod: Pod, now: datetime) -> bool:
    """Whether nothing more is done about a dead pod: a Job's that was evicted, or that nobody let go for ten minutes.

    Its object stays until PodGC has written that it failed. A delete could not take it away sooner where the
    Job has a podFailurePolicy, since its finalizer stays until then. By then taint eviction has told it to go,
    past its budget and with the condition DisruptionTarget: 300 s after its node was not Ready.
    Source: k8s.io/kubernetes/pkg/controller/job/job_controller.go (isPodFailed), pkg/controller/podgc
    """
    gone = node.interruption and node.interruption.gone
    return pod.of_job and bool(pod.deleting or (gone and gone + 2 * PATIENCE <= now))


def is_empty(seen: Observation, node: Node) -> bool:
    """Whether a node holds nothing but what belongs to it: no pod that would have to leave."""
    return not any(map(leaves, seen.on_node.get(node.name, ())))


def opted_out_on(seen: Observation, node: Node) -> list[Pod]:
    """Pods whose owners opted out: never touched, and a node that holds one is never empty."""
    return [pod for pod in seen.on_node.get(node.name, ()) if leaves(pod) and ignored(seen, pod)]


def is_gone(seen: Observation, node: Node) -> bool:
    """Whether EC2 says now that a node's instance is off: an event may be of a former launch."""
    said = seen.instances.get(node.instance or "")
    return said is not None and said.off


def of_present_launches(seen: Observation) -> Observation:
    """Return what is seen without what records say of former launches, where EC2 tells of a later one.

    A record of nothing else stays as it is: `why_over` has it removed.
    """
    kept = {
        node.name: present
        for node in seen.nodes
        if (found := node.interruption) and (said := seen.instances.get(node.instance or ""))
        if (present := in_this_life(found, launched=said.launched)) not in {None, found}
    }
    if not kept:
        return seen
    nodes = [
        replace(node, interruption=kept.get(node.name, node.interruption)) for node in seen.nodes
    ]
    return replace(seen, nodes=nodes)


def why_over(seen: Observation, node: Node, now: datetime) -> str | None:
    """Say why an interruption is over although the node stays; None while it is not."""
    return next(_why_over(seen, node, now), None)


def _why_over(seen: Observation, node: Node, now: datetime) -> Iterator[str]:
    found, said = node.interruption, seen.instances.get(node.instance or "")
    if found is None:
        return
    if found.withdrawn:
        yield "everything that was announced has been called off"
    if seen.policy.response(found) is Response.IGNORE:
        yield f"the policy of the cluster ignores {found.kind}"
    if found.kind == SCALE_DOWN and not is_empty(seen, node):
        yield "pods stand on it again"
    if said is None or said.interrupted:
        return
    if in_this_life(found, launched=said.launched) is None:
        yield f"its instance was launched again, at {said.launched:%Y-%m-%dT%H:%M:%SZ}"
    if _overdue(node, now):
        yield "its deadline is long past, and EC2 says that its instance runs on"
    if _expired(found, now):
        yield f"no interruption followed the {found.kind} within {EXPIRY}"


def _expired(found: Interruption, now: datetime) -> bool:
    """Whether a recommendation was followed by nothing; a later one counts anew."""
    if found.cordoned is None or {n.kind for n in found.standing} != {RebalanceRecommendation.kind}:
        return False
    return max(found.cordoned, found.notices[-1].time) + EXPIRY < now


def ended_by_owner(seen: Observation, node: Node) -> bool:
    """Whether nothing was announced: an owner too may terminate what spot reclaims in any case."""
    announced = node.interruption.standing if node.interruption else ()
    said = seen.instances.get(node.instance or "")
    by_owner = said is not None and said.interrupted and said.ended_by_owner
    return by_owner and {n.kind for n in announced} == {"state-change"}


def _overdue(node: Node, now: datetime) -> bool:
    deadline = None if node.interruption is None else node.interruption.deadline
    return node.ready and deadline is not None and deadline + OVERDUE < now


def held_on(seen: Observation, node: Node, now: datetime, refused: Mapping[str, str]) -> list[Pod]:
    """Return the pods of an interrupted node that the policy leaves there for the time being.

    All where the response is to cordon; on advice those that cannot be released.
    """
    found = node.interruption
    if found is None or is_gone(seen, node):
        return []
    only_cordoned = seen.policy.response(found) is Response.CORDON
    patient = found.on_advice(now) and not seen.policy.maintains(found, now)
    if not (only_cordoned or patient):
        return []
    return [
        pod
        for pod in seen.on_node.get(node.name, ())
        if must_leave(seen, pod, node)
        and pod.deleting is None
        and (only_cordoned or not (pod.released or _releasable(seen, pod, refused)))
    ]


def _releasable(seen: Observation, pod: Pod, refused: Mapping[str, str]) -> bool:
    ref = seen.workload_of(pod)
    why = refused.get(str(ref)) or why_not_released(seen, seen.workload.get(ref), pod, Resources())
    return pod.serving and why is None


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
        if is_gone(seen, node) or _overdue(node, now) or why_over(seen, node, now) is not None:
            continue  # nothing has to leave, or nothing can any more
        interruption = as_told(interruption, seen.hooks_of(node), now)
        held |= {pod.uid for pod in held_on(seen, node, now, refused or {})}
        for pod in seen.on_node.get(node.name, ()):
            if pod.uid in held or not must_leave(seen, pod, node):
                continue
            moving = found[seen.workload_of(pod)]
            if pod.deleting is None:
                moving.append(
                    EvictablePod(
                        pod=pod,
                        replica_set=seen.replica_set(pod),
                        interruption=interruption.identity,
                        cordoned=interruption.cordoned,
                        deadline=interruption.deadline,
                        told=interruption.deadline_told,
                        stop=stop_of(seen, pod),
                        overrules=not interruption.guessed and not pod.of_job,
                        obeys=_never_overruled(seen, pod),
                        clamps=interruption.exact,
                        guarded=bool(guards_of(seen, pod)),
                    )
                )
    drained = _drained_by_others(seen, interrupted, found)
    leaving = _leaving_zones(seen, interrupted, found, now, refused or {})
    for pod in seen.pods:
        if pod.released and pod.deleting is None:
            found.setdefault(seen.workload_of(pod), [])
    claimed: dict[str, Resources] = defaultdict(Resources)
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
            if not must_leave(seen, pod, node) or not guards_of(seen, pod):
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
            if not must_leave(seen, pod, node):
                continue
            old = since is not None and pod.created < since and pod.deleting is None
            if left_for_zone(pod) or (old and _releasable(seen, pod, refused)):
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
    claimed: dict[str, Resources],
    refused: str | None,
) -> WorkloadDisruption:
    workload = seen.workload.get(ref)
    not_releasable = dict(_not_releasable(seen, workload, evictable, claimed, refused))
    evictable = [d for d in evictable if not (d.released_only and d.pod.uid in not_releasable)]
    staying = leaving.keys() & not_releasable.keys()
    pods = tuple(leaving.get(p.uid, p) for p in seen.of_workload.get(ref, ()))
    if workload is not None:
        replicas = workload.held_replicas
    else:  # nobody says how many there should be: one that left may not have been made anew yet
        replicas = max(sum(not p.released for p in pods), seen.counts.get(ref, 0))
    volume = replicas == 1 and any(name for p in pods for name in one_node_claims(seen, p))
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
        dead=frozenset(p.uid for p in pods if is_dead(seen, p)),
        replicas=replicas,
        uncounted=ref in seen.uncounted and ref.kind not in _ALONE,
        floor=0 if volume else _floor(ref, workload, covering, len(pods), replicas),
        covering=covering,
        not_releasable=not_releasable,
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


def _not_releasable(
    seen: Observation,
    workload: Workload | None,
    evictable: Iterable[EvictablePod],
    claimed: dict[str, Resources],
    refused: str | None,
) -> Iterator[tuple[str, str]]:
    """Yield the uids of pods that must not be released and why; the others claim their quota."""
    for pod in (one.pod for one in evictable if not one.pod.released):
        taken = claimed[pod.namespace]
        if (why := refused or why_not_released(seen, workload, pod, taken)) is not None:
            yield pod.uid, why
        elif pod.serving:
            claimed[pod.namespace] = taken + pod.scheduling.requests


def is_dead(seen: Observation, pod: Pod) -> bool:
    """Whether a pod ended with its node, whatever the API server still says of it."""
    if pod.node is None:
        return False
    node = seen.node.get(pod.node)
    return node is None or is_gone(seen, node)


def _floor(
    ref: Ref,
    workload: Workload | None,
    covering: Mapping[str, tuple[Budget, ...]],
    pods: int,
    replicas: int,
) -> int:
    """Return the ready floor. A budget that covers some of the pods keeps no others."""
    budgets = {b.ref: b for found in covering.values() for b in found}
    covered = Counter(b.ref for found in covering.values() for b in found)
    keeps = max(
        (
            budget_keeps(
                replicas if covered[budget.ref] == pods else min(covered[budget.ref], replicas),
                min_available=budget.min_available,
                max_unavailable=budget.max_unavailable,
            )
            for budget in budgets.values()
        ),
        default=0,
    )
    if workload is None:
        # How many its controller wants is not known: what there is must do, but for one.
        return min(keeps if ref.kind in _ALONE else max(keeps, replicas - 1), replicas)
    return ready_floor(
        ref.kind,
        replicas,
        workload.strategy,
        workload.max_unavailable,
        keeps,
        max_surge=workload.max_surge,
    )
