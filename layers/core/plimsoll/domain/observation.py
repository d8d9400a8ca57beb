"""What one observation of a cluster found: the only input of a plan besides the time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from plimsoll.domain.groups import NodeGroup
from plimsoll.domain.interruptions import Interruption
from plimsoll.domain.nodes import Node
from plimsoll.domain.pods import OwnerKind, Pod, Ref
from plimsoll.domain.workloads import (
    Budget,
    Claim,
    LabelSelection,
    Quota,
    ReplicaSet,
    Workload,
)


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
    gone: frozenset[str] = frozenset()
    """Instance ids that EC2 says are terminated."""
    ended_by_owner: frozenset[str] = frozenset()
    """Instance ids that EC2 says their owner stopped or terminated: they buy no capacity."""
    attached: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Node name -> volumes that are still attached to it."""

    def among(
        self,
        *,
        groups: Sequence[NodeGroup],
        gone: frozenset[str] = frozenset(),
        ended_by_owner: frozenset[str] = frozenset(),
    ) -> Observation:
        """Return the same observation with what AWS says beside it."""
        return replace(self, groups=groups, gone=gone, ended_by_owner=ended_by_owner)

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
    def workload(self) -> Mapping[Ref, Workload]:
        """Workloads by reference."""
        return {w.ref: w for w in self.workloads}

    @cached_property
    def on_node(self) -> Mapping[str, Sequence[Pod]]:
        """Pods by the node that they are bound to; finished pods are left out."""
        found: dict[str, list[Pod]] = defaultdict(list)
        for pod in self.pods:
            if pod.node is not None and not pod.finished:
                found[pod.node].append(pod)
        return found

    @cached_property
    def of_workload(self) -> Mapping[Ref, Sequence[Pod]]:
        """Pods by the workload that they belong to; finished pods are left out."""
        found: dict[Ref, list[Pod]] = defaultdict(list)
        for pod in self.pods:
            owner = self.owner(pod)
            if owner is not None and not pod.finished:
                found[owner].append(pod)
        return found

    def owner(self, pod: Pod) -> Ref | None:
        """Return the workload that a pod belongs to: the Deployment above its ReplicaSet."""
        origin = pod.owner
        if origin is None and pod.released and pod.generate_name:
            origin = Ref(OwnerKind.REPLICA_SET, pod.namespace, pod.generate_name[:-1])
            return self.replica_sets[origin].controller if origin in self.replica_sets else None
        above = None if origin is None else self.replica_sets.get(origin)
        return origin if above is None else above.controller

    @cached_property
    def current(self) -> Mapping[Ref, ReplicaSet]:
        """The newest ReplicaSet of each Deployment."""
        newest: dict[Ref, ReplicaSet] = {}
        for each in self.replica_sets.values():
            known = newest.get(each.controller, each)
            newest[each.controller] = max(known, each, key=lambda r: (r.revision, r.ref.name))
        return newest
