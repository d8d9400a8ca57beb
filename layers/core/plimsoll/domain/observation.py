"""What one observation of a cluster found: the only input of a plan besides the time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from plimsoll.domain.groups import NodeGroup
from plimsoll.domain.nodes import Node
from plimsoll.domain.pods import Pod, Ref
from plimsoll.domain.workloads import Budget, Claim, Workload


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
    parents: Mapping[Ref, Ref] = field(default_factory=dict)
    """ReplicaSet -> the Deployment that owns it."""
    revisions: Mapping[Ref, str] = field(default_factory=dict)
    """Workload -> name of its newest ReplicaSet, or its update revision."""
    groups: Sequence[NodeGroup] = ()
    gone: frozenset[str] = frozenset()
    """Instance ids that EC2 says are terminated."""
    attached: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Node name -> volumes that are still attached to it."""

    def among(self, *, groups: Sequence[NodeGroup], gone: frozenset[str]) -> Observation:
        """Return the same observation with what AWS says beside it."""
        return replace(self, groups=groups, gone=gone)

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
        if pod.owner is None:
            return None
        return self.parents.get(pod.owner, pod.owner)
