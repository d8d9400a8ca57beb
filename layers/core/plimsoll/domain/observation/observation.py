"""What one observation of a cluster found: the only input of a plan besides the time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from plimsoll.domain.interruptions import Interruption, LifecycleHook, Policy
from plimsoll.domain.kubernetes import (
    HASHES,
    MOVED,
    BoundPods,
    Budget,
    Claim,
    LabelSelection,
    Node,
    OwnerKind,
    Pod,
    Quota,
    Ref,
    ReplicaSet,
    Scheduling,
    Workload,
    matches,
)
from plimsoll.domain.node_groups import Instance, NodeGroup
from plimsoll.domain.observation.observed_times import WorkloadTimes
from plimsoll.domain.reports import Report
from plimsoll.domain.spot import CapacityPool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftedZone:
    """A zone that traffic is sent away from now."""

    since: datetime
    practice: bool = False
    """Whether nothing is wrong there: capacity is frozen, but pods stay."""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """Nodes, pods and workloads of one cluster, and the node groups behind it.

    Not slotted: the look-ups below are made on first use and kept.
    """

    cluster: str
    nodes: Sequence[Node]
    pods: Sequence[Pod]
    workloads: Sequence[Workload]
    budgets: Sequence[Budget] = ()
    claims: Mapping[tuple[str, str], Claim] = field(default_factory=dict)
    """By (namespace, name)."""
    replica_sets: Mapping[Ref, ReplicaSet] = field(default_factory=dict)
    """Those that have a controller, by reference."""
    label_selections: Sequence[LabelSelection] = ()
    """Services and NetworkPolicies."""
    quotas: Sequence[Quota] = ()
    groups: Sequence[NodeGroup] = ()
    instances: Mapping[str, Instance] = field(default_factory=dict)
    """What EC2 says now, by id, of instances whose Nodes have a record."""
    launched: Mapping[str, datetime] = field(default_factory=dict)
    """Instance -> when it was launched, where that was asked for and node groups do not tell it."""
    policy: Policy = field(default_factory=Policy)
    """What the owner of the cluster wants done about notices."""
    reports: Sequence[Report] | None = ()
    """The newest reports of the cluster, read where a node waits for its turn or is empty; None: not known."""
    pools: Mapping[CapacityPool, float] = field(default_factory=dict)
    """Capacity pool -> its reclaims an hour, as far as they are known; infinity: it is set aside now."""
    shifts: Mapping[str, ShiftedZone] | None = None
    """Zones that traffic is shifted away from, by name; None: not known."""
    attached: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Node name -> volumes that are still attached to it."""
    times: Mapping[Ref, WorkloadTimes] = field(default_factory=dict)
    """How long the pods of workloads took to stop and to start, as far as that is remembered."""
    counts: Mapping[Ref, int] = field(default_factory=dict)
    """Controller that we do not know -> the most pods that it was seen to have."""
    uncounted: frozenset[Ref] = frozenset()
    """Of these controllers a pod may have left that was not made anew yet: they were just begun to be counted."""
    guarding: Mapping[str, str] = field(default_factory=dict)
    """What namespaces say of the guard of all workloads in them, by name, as far as they could be read."""
    obeying: frozenset[str] = frozenset()
    """Namespaces whose owners let nobody delete a pod past its budget."""
    ended: frozenset[str] = frozenset()
    """Uids of pods that a watch saw end by themselves, neither deleted nor evicted, since the last observation."""
    left_out: Sequence[str] = ()
    """Objects that could not be read, or not wholly, each with the reason. They cost themselves only."""

    def hooks_of(self, node: Node) -> tuple[LifecycleHook, ...]:
        """Return the lifecycle hooks that hold the instance of a node, as far as its group was read."""
        return next((g.hooks for g in self.groups if node.instance in g.waiting), ())

    def among(
        self,
        *,
        groups: Sequence[NodeGroup] = (),
        instances: Mapping[str, Instance] | None = None,
        counts: Mapping[Ref, int] | None = None,
        uncounted: frozenset[Ref] = frozenset(),
        pools: Mapping[CapacityPool, float] | None = None,
    ) -> Observation:
        """Return the same observation with what AWS says beside it, and what was seen before."""
        return replace(
            self,
            groups=groups,
            instances=instances or {},
            counts=counts or {},
            uncounted=uncounted,
            pools=pools or {},
        )

    def with_interruptions(self, interrupted: Mapping[str, Interruption]) -> Observation:
        """Return the same observation as if these nodes, by name, were cordoned and interrupted."""
        nodes = [
            replace(node, interruption=interrupted[node.name], unschedulable=True)
            if node.name in interrupted
            else node
            for node in self.nodes
        ]
        return replace(self, nodes=nodes)

    @cached_property
    def node(self) -> Mapping[str, Node]:
        """Nodes by name."""
        return {n.name: n for n in self.nodes}

    @cached_property
    def capacities(self) -> Mapping[str | None, str]:
        """Capacity types of nodes by name, `unknown` where no label of a node tells: to look up `Pod.node` in."""
        return {n.name: n.capacity or "unknown" for n in self.nodes}

    @cached_property
    def workload(self) -> Mapping[Ref, Workload]:
        """Workloads by reference."""
        return {w.ref: w for w in self.workloads}

    @cached_property
    def budgets_in(self) -> Mapping[str, Sequence[Budget]]:
        """Budgets by namespace."""
        found: dict[str, list[Budget]] = defaultdict(list)
        for budget in self.budgets:
            found[budget.ref.namespace].append(budget)
        return found

    def budgets_of(self, pod: Pod) -> tuple[Budget, ...]:
        """Return the budgets that cover a pod."""
        budgets = self.budgets_in.get(pod.namespace)
        if not budgets:
            return ()
        key = pod.namespace, frozenset(pod.labels.items())
        known = self._covering.get(key)
        if known is None:
            known = tuple(b for b in budgets if matches(b.selector, pod.labels))
            self._covering[key] = known
        return known

    @cached_property
    def covered(self) -> Mapping[Ref, Mapping[Ref, int]]:
        """Budget -> workload -> how many of its pods the budget covers."""
        found: dict[Ref, Counter[Ref]] = defaultdict(Counter)
        for ref, pods in self.of_workload.items():
            for pod in pods:
                for budget in self.budgets_of(pod):
                    found[budget.ref][ref] += 1
        return found

    def quotas_of(self, pod: Pod) -> Sequence[Quota]:
        """Return the ResourceQuotas that bind a pod."""
        return [q for q in self.quotas if q.ref.namespace == pod.namespace and q.binds(pod)]

    @cached_property
    def _covering(self) -> dict[tuple[str, frozenset[tuple[str, str]]], tuple[Budget, ...]]:
        """By namespace and labels: pods of one template have the same."""
        return {}

    @cached_property
    def selecting_by_hash(self) -> Mapping[str, Sequence[LabelSelection | Budget]]:
        """By namespace what selects pods by the hash of their template, which a release takes off."""
        found: dict[str, list[LabelSelection | Budget]] = defaultdict(list)
        selecting: list[LabelSelection | Budget] = [*self.label_selections, *self.budgets]
        for one in selecting:
            if {*one.selector.labels, *(r.key for r in one.selector.requirements)} & {*HASHES}:
                found[one.ref.namespace].append(one)
        return found

    @cached_property
    def bound(self) -> BoundPods:
        """Pods that are bound to a node; finished pods are left out."""
        return BoundPods.of(self.pods)

    @property
    def on_node(self) -> Mapping[str, Sequence[Pod]]:
        """Pods by the node that they are bound to; finished pods are left out."""
        return self.bound.on_node

    @cached_property
    def of_workload(self) -> Mapping[Ref, Sequence[Pod]]:
        """Pods by what `workload_of` says; finished pods are left out."""
        found: dict[Ref, list[Pod]] = defaultdict(list)
        known: dict[
            Ref, list[Pod]
        ] = {}  # by owner: a released pod alone tells more of its workload
        for pod in self.pods:
            if pod.finished:
                continue
            if pod.owner is None or pod.released:
                found[self.workload_of(pod)].append(pod)
                continue
            pods = known.get(pod.owner)
            if pods is None:
                pods = known[pod.owner] = found[self.workload_of(pod)]
            pods.append(pod)
        return found

    @cached_property
    def serving(self) -> Mapping[Ref, Sequence[Pod]]:
        """The serving pods of each workload; released pods are left out."""
        return {
            ref: [pod for pod in pods if pod.serving and not pod.released]
            for ref, pods in self.of_workload.items()
        }

    @cached_property
    def serving_by_capacity(self) -> Mapping[Ref, Counter[str]]:
        """How many of the serving pods of each workload stand on nodes of each capacity type, as in `capacities`."""
        capacity_of = self.capacities.get
        return {
            ref: Counter(filter(None, map(capacity_of, [pod.node for pod in pods])))
            for ref, pods in self.serving.items()
        }

    @cached_property
    def moved(self) -> Sequence[Pod]:
        """Pods with the mark of a voluntary move; finished pods are left out."""
        return [pod for pod in self.pods if MOVED in pod.annotations and not pod.finished]

    @cached_property
    def templates(self) -> Mapping[Ref, Collection[Scheduling]]:
        """What the pods of each workload require of nodes. Pods of one template share it, so there are few."""
        return {
            ref: {id(pod.scheduling): pod.scheduling for pod in pods}.values()
            for ref, pods in self.of_workload.items()
        }

    @cached_property
    def pending(self) -> Sequence[Pod]:
        """Pods that wait for kube-scheduler to find a node."""
        # Most pods are bound: asked here, a million calls of the property are saved.
        return [pod for pod in self.pods if pod.node is None and pod.pending]

    def workload_of(self, pod: Pod) -> Ref:
        """Return the workload that a pod belongs to: itself, where nobody owns it."""
        return self.owner(pod) or Ref("Pod", pod.namespace, pod.name)

    def owner(self, pod: Pod) -> Ref | None:
        """Return the workload that a pod belongs to: the Deployment above its ReplicaSet."""
        made = self.replica_set(pod)
        return pod.owner if made is None else made.controller

    def replica_set(self, pod: Pod) -> ReplicaSet | None:
        """Return the ReplicaSet that a pod belongs to; of a released pod, the one that made it."""
        origin = pod.owner
        if pod.released and pod.generate_name:
            origin = Ref(OwnerKind.REPLICA_SET, pod.namespace, pod.generate_name[:-1])
        made = None if origin is None else self.replica_sets.get(origin)
        return made if made and pod.owner in {None, made.ref, made.controller} else None

    @cached_property
    def current(self) -> Mapping[Ref, ReplicaSet]:
        """The newest ReplicaSet of each Deployment and Rollout."""
        newest: dict[Ref, ReplicaSet] = {}
        for each in self.replica_sets.values():
            known = newest.get(each.controller, each)
            # The name breaks ties, so that every plan chooses the same.
            newest[each.controller] = max(known, each, key=lambda r: (r.revision, r.ref.name))
        return newest
