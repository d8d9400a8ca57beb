"""Actions: what should be done to what, and why, as data.

A plan holds actions; a dry run prints them; the executor carries them out in the order of their
waves, those of one wave side by side. To add an action, write its class here and put it in `Action`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, override

from plimsoll.domain.errors import Blocked, NotFound, Refused
from plimsoll.domain.groups import NodeGroup
from plimsoll.domain.interruptions import Interruption
from plimsoll.domain.nodes import Node
from plimsoll.domain.pods import Pod, Ref
from plimsoll.domain.workloads import ReplicaSet
from plimsoll.domain.writers import Writers


class Wave(IntEnum):
    """The order of actions within a plan."""

    CORDON = 0
    """First, so that nothing new lands on a node that is about to lose its instance."""
    CAPACITY = 1
    """New nodes take the longest."""
    REPLACE = 2
    """Replacements, before any pod leaves."""
    LEAVE = 3
    """Evictions and deletions of pods."""
    CLOSE = 4
    """Bookkeeping on nodes that are empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutNode:
    """What actions on a node have in common."""

    node: Node
    reason: str

    @property
    def target(self) -> str:
        """The node."""
        return f"Node {self.node.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutPod:
    """What actions on a pod have in common."""

    pod: Pod
    reason: str

    @property
    def target(self) -> str:
        """The pod."""
        return f"Pod {self.pod}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordon(AboutNode):
    """Cordon, taint and record, in one patch."""

    verb: ClassVar[str] = "cordon"
    wave: ClassVar[Wave] = Wave.CORDON

    interruption: Interruption

    def perform(self, writers: Writers) -> None:
        """Patch the node once."""
        writers.cluster.cordon(self.node, self.interruption)


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncordon(AboutNode):
    """Take cordon, taint and record off a node whose interruption was called off."""

    verb: ClassVar[str] = "uncordon"
    wave: ClassVar[Wave] = Wave.CORDON

    def perform(self, writers: Writers) -> None:
        """Patch the node once."""
        writers.cluster.uncordon(self.node)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grow:
    """Ask a node group for more nodes; never lowers anything."""

    verb: ClassVar[str] = "grow"
    wave: ClassVar[Wave] = Wave.CAPACITY

    group: NodeGroup
    add: int
    zone: str | None
    token: str
    """Made from what it is for: the same request, sent twice, is one."""
    reason: str

    @property
    def target(self) -> str:
        """The group and how many."""
        where = f" in {self.zone}" if self.zone else ""
        return f"{self.group.kind} {self.group.name} by {self.add}{where}"

    def perform(self, writers: Writers) -> None:
        """Make one request."""
        writers.capacity.grow(self.group, self.add, self.zone, self.token)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(AboutPod):
    """Hand a pod from its ReplicaSet to its Deployment: another is made, while this one serves on."""

    verb: ClassVar[str] = "release"
    wave: ClassVar[Wave] = Wave.REPLACE

    owner: Ref
    """Its Deployment, which becomes the controlling owner."""
    owner_uid: str
    """As its ReplicaSet names the Deployment: for a wrong UID, garbage collection deletes the pod."""
    interruption: str
    """The identity of the interruption that it is released for."""

    def perform(self, writers: Writers) -> None:
        """Patch the pod once."""
        writers.cluster.release(self.pod, self.owner, self.owner_uid, self.interruption)


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoRelease(AboutPod):
    """Hand a released pod back to its ReplicaSet, which then deletes a pod that it has too many."""

    verb: ClassVar[str] = "undo-release"
    wave: ClassVar[Wave] = Wave.REPLACE

    replica_set: ReplicaSet

    def perform(self, writers: Writers) -> None:
        """Patch the pod once: label, owner and annotation together."""
        writers.cluster.undo_release(self.pod, self.replica_set)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evict(AboutPod):
    """Evict a pod, through its PodDisruptionBudgets.

    With `overrule`, a pod whose budget still refuses is deleted: the instance takes the pod in any
    case, and a delete leaves it time to stop. The same holds for the 500 that an eviction of a pod
    with two budgets always gets.
    Source: https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/
    """

    verb: ClassVar[str] = "evict"
    wave: ClassVar[Wave] = Wave.LEAVE

    grace_seconds: int | None = None
    """None keeps the pod's own grace period."""
    overrule: bool = False

    def perform(self, writers: Writers) -> None:
        """Evict it; delete it if that is refused and may be overruled."""
        try:
            writers.cluster.evict(self.pod, self.grace_seconds)
        except (Blocked, Refused):
            if not self.overrule:
                raise
            writers.cluster.delete(self.pod, self.grace_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForceDelete(AboutPod):
    """Delete a pod at once, because EC2 says that its instance is gone.

    Nothing runs there any more, yet for most of a minute the API server shows the pod as Ready, and
    a StatefulSet waits for its deletion before it makes the next pod of that name. Never for an instance that may still run: two
    pods of one name could then write to one volume. Source:
    https://kubernetes.io/docs/tasks/run-application/force-delete-stateful-set-pod/
    """

    verb: ClassVar[str] = "force-delete"
    wave: ClassVar[Wave] = Wave.LEAVE

    def perform(self, writers: Writers) -> None:
        """Delete it without a grace period."""
        writers.cluster.delete(self.pod, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfService(AboutNode):
    """Taint a node out of service, so that its volumes detach without a wait of six minutes.

    Only when EC2 says that the instance is gone: two writers on one volume lose data.
    Source: https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/#non-graceful-node-shutdown
    """

    verb: ClassVar[str] = "out-of-service"
    wave: ClassVar[Wave] = Wave.LEAVE

    def perform(self, writers: Writers) -> None:
        """Add the taint."""
        writers.cluster.out_of_service(self.node)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(AboutNode):
    """Write on the node how far its interruption has come."""

    verb: ClassVar[str] = "record"
    wave: ClassVar[Wave] = Wave.CLOSE

    interruption: Interruption

    def perform(self, writers: Writers) -> None:
        """Patch the annotation only."""
        writers.cluster.record(self.node, self.interruption)


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminateInstance(AboutNode):
    """Terminate an empty instance, whose group then launches another, and close its interruption.

    Only after a recommendation without a deadline, and only in groups whose owner marked them with
    the tag `plimsoll.dev/renew: "true"`: a recommended instance often lives on for hours.
    """

    verb: ClassVar[str] = "terminate-instance"
    wave: ClassVar[Wave] = Wave.CLOSE

    interruption: Interruption
    """Already marked as closed."""

    @property
    @override
    def target(self) -> str:
        """The node and its instance."""
        return f"Node {self.node.name} ({self.interruption.instance})"

    def perform(self, writers: Writers) -> None:
        """Terminate it, then record that: the other way round, a failure would leave it running."""
        writers.capacity.terminate(self.interruption.instance)
        writers.cluster.record(self.node, self.interruption)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteLifecycle(AboutNode):
    """Tell Auto Scaling that an instance is drained, then record that.

    Both in one action, so that a completion that failed is tried again in the next round.
    Source: https://docs.aws.amazon.com/autoscaling/ec2/userguide/completing-lifecycle-hooks.html
    """

    verb: ClassVar[str] = "complete-lifecycle"
    wave: ClassVar[Wave] = Wave.CLOSE

    interruption: Interruption
    """Already marked as closed."""

    @property
    @override
    def target(self) -> str:
        """The instance and the hooks that hold it."""
        hooks = ", ".join(f"{n.hook} of {n.group}" for n in self.interruption.hooks)
        return f"{self.interruption.instance} ({hooks})"

    def perform(self, writers: Writers) -> None:
        """Complete each hook with CONTINUE; one that is already over counts as completed."""
        for notice in self.interruption.hooks:
            try:
                writers.capacity.complete_lifecycle(
                    notice.group or "",
                    notice.hook or "",
                    notice.token,
                    self.interruption.instance,
                )
            except NotFound:
                continue
        writers.cluster.record(self.node, self.interruption)


type Action = (
    Cordon
    | Uncordon
    | Grow
    | Release
    | UndoRelease
    | Evict
    | ForceDelete
    | OutOfService
    | Record
    | TerminateInstance
    | CompleteLifecycle
)
"""Every action. The executor takes no other."""
