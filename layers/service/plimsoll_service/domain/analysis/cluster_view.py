"""A snapshot as the predicates of the core layer read it: what fits where, and what may be moved.

What a snapshot does not tell of a pod's place is never guessed. Such a pod is not moved, and its node
is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final

from plimsoll.domain.kubernetes import (
    IGNORE,
    INSTANCE_TYPE,
    REGION,
    ZONE,
    Claim,
    Node,
    NodeTerm,
    OwnerKind,
    Pod,
    PodTerm,
    Ref,
    Requirement,
    Resources,
    Scheduling,
    Selector,
    SpreadConstraint,
    Taint,
    Toleration,
    capacity_of,
    is_ignored,
    runs_twice,
    unavailable,
    why_protected,
)
from plimsoll.domain.scheduling import ClusterSnapshot
from plimsoll_service.wire import snapshot as wire

SPOT: Final = "spot"
ON_DEMAND: Final = "on-demand"
OWNER: Final = "plimsoll.dev/owner"
"""Stands for the labels that a pod and the selectors of its own workload have in common."""
_WITH_NODE: Final = frozenset({OwnerKind.DAEMON_SET, OwnerKind.NODE})
"""Owners of pods that come and go with their node."""
_MOVABLE: Final = frozenset(
    {OwnerKind.DEPLOYMENT, OwnerKind.STATEFUL_SET, OwnerKind.REPLICA_SET, OwnerKind.ROLLOUT}
)
_DOMAINS: Final = ("kubernetes.io/hostname", ZONE)


@dataclass(frozen=True, kw_only=True)
class View:
    """One cluster at one time. Not slotted: what is derived is made on first use and kept."""

    seen: wire.Snapshot
    """A full snapshot."""

    @property
    def at(self) -> datetime:
        """When it was taken."""
        return self.seen.taken_at

    @cached_property
    def region(self) -> str | None:
        """The region that most of its nodes are in."""
        regions = Counter(n.labels[REGION] for n in self.seen.nodes if REGION in n.labels)
        return max(regions, key=lambda name: (regions[name], name), default=None)

    @property
    def instance_types(self) -> Collection[str]:
        """The types of its nodes."""
        return {n.labels[INSTANCE_TYPE] for n in self.seen.nodes if INSTANCE_TYPE in n.labels}

    @cached_property
    def nodes(self) -> Mapping[str, Node]:
        """Nodes by name."""
        return {node.name: _node(node) for node in self.seen.nodes}

    @cached_property
    def workloads(self) -> Mapping[str, wire.Workload]:
        """Workloads by uid."""
        return {workload.uid: workload for workload in self.seen.workloads}

    @cached_property
    def pods(self) -> Mapping[str, Pod]:
        """Pods by uid. Those of one template share what decides where they may run."""
        shared: dict[tuple[object, ...], Scheduling] = {}
        found = {}
        for pod in self.seen.pods:
            workload = self.workload_of(pod)
            uid = workload.uid if workload else pod.uid
            key = (uid, pod.requests.cpu_m, pod.requests.memory, pod.volumes)
            if key not in shared:
                shared[key] = scheduling_of(pod, workload)
            found[pod.uid] = Pod(
                namespace=pod.namespace,
                name=pod.name,
                uid=pod.uid,
                resource_version="",
                labels={OWNER: uid},
                annotations=pod.annotations,
                owner=Ref(pod.owner.kind, pod.namespace, pod.owner.name) if pod.owner else None,
                node=pod.node or None,
                phase=pod.phase,
                ready=pod.ready,
                deleting=pod.created_at if pod.deleting else None,
                created=pod.created_at,
                started=pod.created_at,
                priority=pod.priority,
                restarts=pod.restart_policy != "Never",
                scheduling=shared[key],
            )
        return found

    @cached_property
    def waiting(self) -> tuple[wire.Pod, ...]:
        """One pod of each kind that waits for a node: those of one template share what decides where they may run."""
        waiting = (p for p in self.seen.pods if not (p.node or p.elsewhere or p.deleting))
        return tuple({id(self.pods[pod.uid].scheduling): pod for pod in waiting}.values())

    @cached_property
    def claims(self) -> Mapping[tuple[str, str], Claim]:
        """Claims by namespace and name, with the zone of their volume."""
        return {
            (volume.namespace, volume.claim): Claim(
                namespace=volume.namespace,
                name=volume.claim,
                volume=volume.name,
                node_terms=_in_zone(volume.zone) if volume.zone else None,
            )
            for volume in self.seen.volumes
            if volume.claim
        }

    @cached_property
    def on_node(self) -> Mapping[str, tuple[wire.Pod, ...]]:
        """Pods by the name of their node; nodes without pods too."""
        found: dict[str, list[wire.Pod]] = {node.name: [] for node in self.seen.nodes}
        for pod in self.seen.pods:
            if pod.node in found:
                found[pod.node].append(pod)
        return {name: tuple(pods) for name, pods in found.items()}

    @cached_property
    def of_workload(self) -> Mapping[str, tuple[wire.Pod, ...]]:
        """Pods by the uid of their workload."""
        found: dict[str, list[wire.Pod]] = {}
        for pod in self.seen.pods:
            if pod.owner is not None:
                found.setdefault(pod.owner.uid, []).append(pod)
        return {uid: tuple(pods) for uid, pods in found.items()}

    def standing(self) -> ClusterSnapshot:
        """Return nodes and pods as they stand, to plan on."""
        return ClusterSnapshot(self.nodes.values(), self.pods.values(), self.claims)

    def workload_of(self, pod: wire.Pod) -> wire.Workload | None:
        """Return the workload that a pod belongs to, if it is told."""
        return self.workloads.get(pod.owner.uid) if pod.owner else None

    def leaves(self, pod: wire.Pod) -> bool:
        """Whether a pod has to go elsewhere when its node goes."""
        return pod.owner is None or pod.owner.kind not in _WITH_NODE

    def why_unknown(self, pod: wire.Pod) -> str | None:
        """Say what is not known of a pod that goes elsewhere; None: where it fits is known."""
        workload = self.workload_of(pod)
        if workload is None:
            return "nothing is told of what owns it" if pod.owner else "nobody makes it anew"
        if workload.placing.unstated or _keys(workload.placing) - set(wire.NODE_LABELS):
            return "it asks more of its node than a snapshot tells"
        return None

    def why_stays(self, pod: wire.Pod) -> str | None:  # noqa: PLR0911 - one line for each reason
        """Say why a pod must not be moved without need; None where it may be."""
        workload = self.workload_of(pod)
        unknown = self.why_unknown(pod)
        if unknown is not None or workload is None:
            return unknown
        if workload.kind not in _MOVABLE:
            return f"a {workload.kind} would lose what it has done"
        if is_ignored(workload.annotations, pod.annotations):
            return f"its owner opted out with {IGNORE}"
        if pod.restart_policy == "Never" or workload.strategy == "OnDelete":
            return "it is not made anew while it runs"
        if not runs_twice(workload.kind, workload.replicas, workload.strategy):
            return "it cannot run twice, and would be down while it moves"
        if workload.ready < workload.replicas:
            return f"only {workload.ready} of {workload.replicas} replicas are Ready"
        if (why := why_protected(self.pods[pod.uid], None, self.at)) is not None:
            return why
        held = self._held.get(workload.uid)
        return f"the budget {held.namespace}/{held.name} lets none go" if held else None

    @cached_property
    def _held(self) -> Mapping[str, wire.Budget]:
        """Uid of a workload -> a budget that lets none of its pods go now."""
        budgets = (each for each in self.seen.budgets if each.disruptions_allowed == 0)
        return {uid: each for each in budgets for uid in each.workloads}

    def idle_since(self, before: Mapping[str, datetime]) -> Mapping[str, datetime]:
        """Return the load balancers without a Ready endpoint, by uid, and since when, as far as `before` knows."""
        idle = (b.uid for b in self.seen.load_balancers if b.provisioned and not b.ready_endpoints)
        return {uid: before.get(uid, self.at) for uid in idle}

    @cached_property
    def scalers(self) -> Mapping[str, wire.Autoscaler]:
        """Autoscalers by the uid of what they scale."""
        return {scaler.workload: scaler for scaler in self.seen.autoscalers}

    @cached_property
    def most_together(self) -> Mapping[tuple[str, str], int]:
        """(uid of a workload, topology key) -> the most of its pods that may share one domain.

        Losing a node, or a zone, must take no more replicas than it could today, or than the workload's own
        rollout may have missing.
        """
        found = {}
        for uid, pods in self.of_workload.items():
            workload = self.workloads.get(uid)
            spare = (
                unavailable(workload.replicas, workload.max_unavailable, workload.max_surge)
                if workload
                else 0
            )
            for key in _DOMAINS:
                domains = Counter(
                    _domain(self.nodes[pod.node], key) for pod in pods if pod.node in self.nodes
                )
                found[uid, key] = max(1, spare, *domains.values())
        return found


class Together:
    """Counts replicas of workloads by node and zone, against the most that may share one."""

    def __init__(self, view: View) -> None:
        self._most = view.most_together
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def take(self, pod: Pod, node: Node, by: int = 1) -> None:
        """Count a pod on a node; with -1 no longer."""
        for key in _DOMAINS:
            self._counts[pod.labels[OWNER], key, _domain(node, key)] += by

    def allows(self, pod: Pod, node: Node) -> bool:
        """Whether one more pod may stand there."""
        uid, counts, most = pod.labels[OWNER], self._counts, self._most
        for key in _DOMAINS:  # asked for each pod and node: a generator costs more than the look
            if counts[uid, key, _domain(node, key)] >= most.get((uid, key), 1):
                return False
        return True


def _domain(node: Node, key: str) -> str:
    return node.name if key == _DOMAINS[0] else node.zone or ""


def stands_on_spot(view: View, workload: wire.Workload) -> int:
    """Return how many of its pods stand on spot."""
    nodes = (view.nodes.get(pod.node) for pod in view.of_workload.get(workload.uid, ()))
    return sum(node is not None and node.capacity == SPOT for node in nodes)


def scheduling_of(pod: wire.Pod, workload: wire.Workload | None) -> Scheduling:
    """Return what decides where a pod may run."""
    placing = workload.placing if workload else wire.Placing()
    own = Selector(labels={OWNER: workload.uid if workload else pod.uid})
    return Scheduling(
        requests=amounts(pod.requests, pods=1),
        node_selector=placing.node_selector,
        node_terms=tuple(
            NodeTerm(
                expressions=tuple(
                    Requirement(key=each.key, operator=each.operator, values=each.values)
                    for each in term
                )
            )
            for term in placing.node_terms
        )
        or None,
        tolerations=tuple(
            Toleration(key=each.key, operator=each.operator, value=each.value, effect=each.effect)
            for each in placing.tolerations
        ),
        anti_affinity=tuple(PodTerm(topology_key=key, selector=own) for key in placing.apart),
        spread=tuple(
            SpreadConstraint(
                max_skew=each.max_skew, topology_key=each.topology_key, hard=True, selector=own
            )
            for each in placing.spread
        ),
        claims=pod.volumes,
    )


def amounts(told: wire.Amounts, *, pods: int | None = None) -> Resources:
    """Return amounts as the core layer counts them."""
    return Resources(cpu=told.cpu_m, memory=told.memory, pods=told.pods if pods is None else pods)


def _keys(placing: wire.Placing) -> set[str]:
    return {
        *placing.node_selector,
        *(each.key for term in placing.node_terms for each in term),
        *placing.apart,
        *(each.topology_key for each in placing.spread),
    }


def _node(told: wire.Node) -> Node:
    return Node(
        name=told.name,
        uid=told.uid,
        resource_version="",
        labels=told.labels,
        annotations=told.annotations,
        taints=tuple(Taint(key=t.key, value=t.value, effect=t.effect) for t in told.taints),
        unschedulable=told.unschedulable,
        ready=told.ready,
        allocatable=amounts(told.allocatable),
        instance=told.provider_id.rpartition("/")[2] or None,
        zone=told.labels.get(ZONE),
        capacity=capacity_of(told.labels),
        created=told.created_at,
    )


def _in_zone(zone: str) -> tuple[NodeTerm, ...]:
    return (NodeTerm(expressions=(Requirement(key=ZONE, operator="In", values=(zone,)),)),)
