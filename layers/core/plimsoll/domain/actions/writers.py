"""The writes that actions are made of: those to a cluster, and those to its node groups.

Adapters implement them; an observe-only cluster gets none. Every write is safe to repeat, carries a
precondition (UID or resourceVersion) where a repeat could hurt, and raises `Conflict`, `NotFound`,
`Blocked`, `Throttled`, `Refused` or another `Temporary`: see `plimsoll.domain.errors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from plimsoll.domain.interruptions import Interruption, LifecycleHook
from plimsoll.domain.kubernetes import Budget, ClusterEvent, Node, Pod, ReplicaSet, Workload
from plimsoll.domain.node_groups import NodeGroup


class EventWriter(Protocol):
    """Tells about objects of one Kubernetes cluster."""

    def create_event(self, event: ClusterEvent) -> None:
        """Create an Event of Kubernetes; `Conflict` where it was created before."""


class ClusterWriter(EventWriter, Protocol):
    """Writes to one Kubernetes cluster."""

    def cordon(self, node: Node, interruption: Interruption) -> None:
        """Cordon, taint and record in one patch, under the node's resourceVersion."""

    def record(self, node: Node, interruption: Interruption) -> None:
        """Replace the record only, under the node's resourceVersion."""

    def uncordon(self, node: Node) -> None:
        """Take taint and record off again, and our own cordon, under the node's resourceVersion."""

    def mark_unschedulable(self, node: Node, *, unschedulable: bool) -> None:
        """Set or take off the cordon alone, under the node's resourceVersion."""

    def out_of_service(self, node: Node) -> None:
        """Add the taint `node.kubernetes.io/out-of-service` so that volumes detach at once."""

    def taint(self, node: Node, *, tainted: bool) -> None:
        """Set or take off the taint of a zonal shift, under the node's resourceVersion."""

    def label(self, node: Node, labels: Mapping[str, str | None]) -> None:
        """Change labels of a node, under its resourceVersion; None takes one off."""

    def annotate_pod(self, pod: Pod, key: str, value: str | None) -> None:
        """Set an annotation of a pod, under its UID and resourceVersion; None takes it off."""

    def inject_floors(self, namespace: str, entries: Mapping[str, str | None]) -> None:
        """Change what the admission policy gives the new pods of workloads; None gives nothing."""

    def guard(self, workload: Workload, name: str) -> None:
        """Create a PodDisruptionBudget that lets no pod of a workload go; it is deleted with the workload."""

    def unguard(self, budget: Budget) -> None:
        """Delete such a budget, under its UID."""

    def remove_injection(self) -> None:
        """Delete the binding of the admission policy: pods are created as without it from then on."""

    def release(
        self, pod: Pod, replica_set: ReplicaSet, interruption: str, moved: str | None = None
    ) -> None:
        """Take the label by which its ReplicaSet counts a pod off, and annotate the interruption.

        In one patch under UID and resourceVersion, which makes the Deployment above the controlling
        owner; where that is a Rollout, or the API server keeps owners from us, the label goes alone.
        `moved` is the mark of a voluntary move.
        """

    def undo_release(self, pod: Pod, replica_set: ReplicaSet) -> None:
        """Put the label back, and the owner where it was changed, in one patch as `release` does."""

    def evict(self, pod: Pod, grace_seconds: int | None = None) -> None:
        """Evict a pod, under its UID; None keeps its own grace period."""

    def delete(self, pod: Pod, grace_seconds: int | None = None) -> None:
        """Delete a pod past its budget, under its UID."""


class CapacityWriter(Protocol):
    """Writes to node groups."""

    def grow(self, group: NodeGroup, add: int, zone: str | None, token: str) -> int:
        """Ask for more nodes and return how many were promised; never lowers anything.

        Launches instances where the endpoint and the group allow it, else raises the desired
        capacity from a fresh read. The same token asks only once.
        """

    def heartbeat(self, hook: LifecycleHook, instance: str) -> None:
        """Let an instance wait for its hook once more as long as the hook's timeout."""

    def complete_lifecycle(self, hook: LifecycleHook, instance: str) -> None:
        """Let an instance that is drained be terminated at once."""

    def terminate(self, instance: str, *, decrement: bool) -> None:
        """Terminate an instance, and lower the desired capacity of its group; else it launches another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writers:
    """All that an action can write to."""

    cluster: ClusterWriter
    capacity: CapacityWriter
