"""The writes that actions are made of: those to a cluster, and those to its node groups.

Adapters implement them; an observe-only cluster gets none. Every write is safe to repeat, carries a
precondition (UID or resourceVersion) where a repeat could hurt, and raises `Conflict`, `NotFound`,
`Blocked`, `Throttled`, `Refused` or another `Temporary`: see `plimsoll.domain.errors`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from plimsoll.domain.groups import NodeGroup
from plimsoll.domain.interruptions import Interruption
from plimsoll.domain.nodes import Node
from plimsoll.domain.pods import Pod, Ref
from plimsoll.domain.workloads import ReplicaSet


class ClusterWriter(Protocol):
    """Writes to one Kubernetes cluster."""

    def cordon(self, node: Node, interruption: Interruption) -> None:
        """Cordon, taint and record in one patch, under the node's resourceVersion."""

    def record(self, node: Node, interruption: Interruption) -> None:
        """Replace the record only, under the node's resourceVersion."""

    def uncordon(self, node: Node) -> None:
        """Take cordon, taint and record off again, under the node's resourceVersion."""

    def mark_unschedulable(self, node: Node, *, unschedulable: bool) -> None:
        """Set or take off the cordon alone, under the node's resourceVersion."""

    def out_of_service(self, node: Node) -> None:
        """Add the taint `node.kubernetes.io/out-of-service` so that volumes detach at once."""

    def release(self, pod: Pod, owner: Ref, owner_uid: str, interruption: str) -> None:
        """Take `pod-template-hash` off a pod and make `owner` its controller, in one patch.

        Under the pod's UID and resourceVersion. The annotation names the interruption.
        """

    def undo_release(self, pod: Pod, replica_set: ReplicaSet) -> None:
        """Put label and owner of a released pod back, in one patch under UID and resourceVersion."""

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

    def complete_lifecycle(self, group: str, hook: str, token: str | None, instance: str) -> None:
        """Let an instance that is drained be terminated at once.

        Without a token the action is found by its instance.
        """

    def terminate(self, instance: str) -> None:
        """Terminate an instance; its group keeps its desired capacity and launches another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writers:
    """All that an action can write to."""

    cluster: ClusterWriter
    capacity: CapacityWriter
