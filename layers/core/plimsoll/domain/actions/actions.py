"""Actions: what should be done to what, and why, as data.

A plan holds actions; a dry run prints them; the executor carries them out in the order of their
waves, those of one wave side by side. To add an action, write its class here, put it in `Action`, and say in
`plimsoll.services.executor` which calls it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, unique
from itertools import islice
from typing import ClassVar, override

from plimsoll.domain.errors import Blocked, PlimsollError, Refused
from plimsoll.domain.interruptions import Interruption, LifecycleHook
from plimsoll.domain.kubernetes import (
    Budget,
    Node,
    Pod,
    Ref,
    ReplicaSet,
    Workload,
)
from plimsoll.domain.node_groups import NodeGroup


@unique
class Wave(IntEnum):
    """The order of actions within a plan."""

    CORDON = 0
    """First, so that nothing new lands on a node that is about to lose its instance."""
    CAPACITY = 1
    """New nodes take the longest."""
    RETIRE = 2
    """Evictions of pods whose replacements are available: they cost nothing, and finish nodes."""
    DEADLINE = 3
    """Evictions at eviction deadlines. These pods serve no longer and a released one does, so their successors ask
    kube-scheduler for a place first."""
    REPLACE = 4
    """Replacements, before any other pod leaves."""
    LEAVE = 5
    """Evictions and deletions of pods."""
    CLOSE = 6
    """Bookkeeping on nodes that are empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutNode:
    """What actions on a node have in common."""

    refusable: ClassVar[bool] = False
    """Whether an action that the API server refused is left out of the next plans, with the reason."""
    event: ClassVar[str | None] = None
    """The reason of the Event of Kubernetes that tells of it once it is done; None where none does."""

    node: Node
    reason: str

    @property
    def target(self) -> str:
        """The node."""
        return f"Node {self.node.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutPod:
    """What actions on a pod have in common."""

    refusable: ClassVar[bool] = False
    """As of `AboutNode`."""
    event: ClassVar[str | None] = None
    """As of `AboutNode`."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncordon(AboutNode):
    """Take taint, record and our own cordon off a node that stays."""

    verb: ClassVar[str] = "uncordon"
    event: ClassVar[str | None] = "Uncordoned"
    wave: ClassVar[Wave] = Wave.CORDON


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelNode(AboutNode):
    """Change the spread labels of a node. Running pods do not move: labels decide where new ones go."""

    verb: ClassVar[str] = "label"
    refusable: ClassVar[bool] = True

    labels: Mapping[str, str | None]
    """Label -> its new value; None takes it off."""
    wave: Wave = Wave.CORDON
    """Spot groups open a wave later: were theirs the first labels, Pending pods would all go there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclude(AboutNode):
    """Have load balancers take a node out of their targets, or put it back. No pod is touched."""

    verb: ClassVar[str] = "exclude"
    wave: ClassVar[Wave] = Wave.LEAVE
    """Behind evictions, which a plan adds before it: in a large storm no pod may wait for hundreds of labels."""
    refusable: ClassVar[bool] = True

    excluded: bool = True
    """False takes the label off again."""

    @property
    @override
    def target(self) -> str:
        """The node, and as what: a refusal here says nothing about its other labels."""
        return f"Node {self.node.name} as a target of load balancers"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaintNode(AboutNode):
    """Let kube-scheduler place pods elsewhere where they fit, or not any more. No pod is touched."""

    verb: ClassVar[str] = "taint"
    wave: ClassVar[Wave] = Wave.CORDON
    refusable: ClassVar[bool] = True

    tainted: bool = True
    """False takes the taint off again."""

    @property
    @override
    def target(self) -> str:
        """The node, and as what: a refusal here says nothing about its other changes."""
        return f"Node {self.node.name} as one of a shifted zone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grow:
    """Ask a node group for more nodes; never lowers anything."""

    verb: ClassVar[str] = "grow"
    wave: ClassVar[Wave] = Wave.CAPACITY
    refusable: ClassVar[bool] = False

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(AboutPod):
    """Make a ReplicaSet let go of a pod: it makes another, while this one serves on.

    The Deployment above becomes the controlling owner: budgets count the pod for it, and it takes the
    pod along when it is deleted. With an Argo Rollout as owner, budgets would count it twice.
    """

    verb: ClassVar[str] = "release"
    event: ClassVar[str | None] = "Released"
    wave: ClassVar[Wave] = Wave.REPLACE

    replica_set: ReplicaSet
    interruption: str
    """The identity of the interruption that it is released for."""
    moved: str | None = None
    """The mark of a voluntary move."""
    do_not_disrupt: str | None = None
    """Up to which age Karpenter is not to evict it; None: that is not for us to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoRelease(AboutPod):
    """Hand a released pod back to its ReplicaSet, which then deletes a pod that it has too many."""

    verb: ClassVar[str] = "undo-release"
    event: ClassVar[str | None] = "ReleaseUndone"
    wave: ClassVar[Wave] = Wave.REPLACE
    refusable: ClassVar[bool] = True

    replica_set: ReplicaSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Evict(AboutPod):
    """Evict a pod, through its PodDisruptionBudgets.

    With `overrule`, a pod whose budget still refuses is deleted: the instance takes the pod in any
    case, and a delete leaves it time to stop. The same holds for the 500 that an eviction of a pod
    with two budgets always gets. Never for a Job's pod: an eviction sets the condition DisruptionTarget, which
    the Job's podFailurePolicy may ignore, and a delete leaves a failure.
    Sources: https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/,
    https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions
    """

    verb: ClassVar[str] = "evict"
    event: ClassVar[str | None] = "Evicted"
    refusable: ClassVar[bool] = True

    grace_seconds: int | None = None
    """None keeps the pod's own grace period."""
    kept_up_grace_seconds: int | None = None
    """The same, in case that a heartbeat of its plan lets the node's instance wait longer."""
    overrule: bool = False
    guarded: bool = False
    """Whether only budgets of ours cover it: then no owner's budget is overruled."""
    wave: Wave = Wave.LEAVE

    def overrules(self, refusal: PlimsollError) -> bool:
        """Whether the pod is deleted although its eviction was refused: by a budget, or by a webhook."""
        # An overloaded API server answers 429 like a budget, but as `Throttled`: it refused no pod, so nothing is overruled.
        # https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/#how-api-initiated-eviction-works
        return self.overrule and isinstance(refusal, Blocked | Refused)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForceDelete(AboutPod):
    """Delete a pod at once, because EC2 says that its instance is gone.

    Nothing runs there any more, yet for most of a minute the API server shows the pod as Ready, and
    a StatefulSet waits for its deletion before it makes the next pod of that name. Never for an instance that may still run: two
    pods of one name could then write to one volume. Never for a Job's pod, which `Evict` describes. Source:
    https://kubernetes.io/docs/tasks/run-application/force-delete-stateful-set-pod/
    """

    verb: ClassVar[str] = "force-delete"
    event: ClassVar[str | None] = "ForceDeleted"
    wave: ClassVar[Wave] = Wave.LEAVE


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfService(AboutNode):
    """Taint a node out of service: its volumes detach without a wait of six minutes, and PodGC ends its pods.

    Only when EC2 says that the instance is gone: two writers on one volume lose data.
    Source: https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/#non-graceful-node-shutdown
    """

    verb: ClassVar[str] = "out-of-service"
    event: ClassVar[str | None] = "OutOfService"
    wave: ClassVar[Wave] = Wave.LEAVE


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDeletionCost(AboutPod):
    """Say whether scale-in may take a pod before others."""

    verb: ClassVar[str] = "set-deletion-cost"
    wave: ClassVar[Wave] = Wave.CLOSE

    cost: str | None
    """None takes the annotation off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkMoved(AboutPod):
    """Let the replacement of a pod that placement moved inherit its mark, before that pod is evicted."""

    verb: ClassVar[str] = "mark-moved"
    wave: ClassVar[Wave] = Wave.REPLACE

    moved: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DoNotDisrupt(AboutPod):
    """Have Karpenter leave a pod on an interrupted node to us until it has reached an age, or no longer.

    Never for good: a mark that outlives its writer would end the pod with its instance, and keep a node that
    stays from being consolidated.
    """

    verb: ClassVar[str] = "do-not-disrupt"
    wave: ClassVar[Wave] = Wave.REPLACE
    refusable: ClassVar[bool] = True

    duration: str | None
    """The age; None takes off what we set."""

    @property
    @override
    def target(self) -> str:
        """The pod, and as what: a refusal here says nothing about its eviction."""
        return f"Pod {self.pod} as one that Karpenter leaves alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class TellDeadline(AboutPod):
    """Write on a pod when the first node of its gang goes. A container reads it through the downward API."""

    verb: ClassVar[str] = "tell-deadline"
    wave: ClassVar[Wave] = Wave.LEAVE
    """Behind evictions, which a plan adds before it."""
    refusable: ClassVar[bool] = True

    deadline: str | None
    """None takes the annotation off."""

    @property
    @override
    def target(self) -> str:
        """The pod, and as what: a refusal here says nothing about its eviction."""
        return f"Pod {self.pod} as one of a gang"


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectFloors:
    """Tell the admission policy what new pods of a namespace need. Running pods stay as they are."""

    verb: ClassVar[str] = "inject"
    wave: ClassVar[Wave] = Wave.CLOSE
    refusable: ClassVar[bool] = False

    namespace: str
    entries: Mapping[str, str | None]
    """Workload, as in `deployment.web` -> what its pods get; None: nothing any more."""
    reason: str

    @property
    def target(self) -> str:
        """The namespace and what it is told."""
        said = [f"{key}: {value or 'nothing'}" for key, value in islice(self.entries.items(), 5)]
        more = [f"{len(self.entries) - 5} more"] if len(self.entries) > 5 else []  # noqa: PLR2004
        return f"Namespace {self.namespace} ({', '.join(said + more)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Make a budget that lets nobody evict the pods of a workload before they are replaced."""

    verb: ClassVar[str] = "guard"
    wave: ClassVar[Wave] = Wave.CORDON
    refusable: ClassVar[bool] = True

    workload: Workload
    name: str
    """Of the budget."""
    reason: str

    @property
    def target(self) -> str:
        """The budget."""
        return str(Ref("PodDisruptionBudget", self.workload.ref.namespace, self.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unguard:
    """Delete a budget of ours: beside another one it would keep every pod from being evicted."""

    verb: ClassVar[str] = "unguard"
    wave: ClassVar[Wave] = Wave.CORDON
    """Before evictions: the eviction API refuses pods of two budgets, and the owner's would be overruled."""
    refusable: ClassVar[bool] = True

    budget: Budget
    reason: str

    @property
    def target(self) -> str:
        """The budget."""
        return str(self.budget.ref)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(AboutNode):
    """Write on the node how far its interruption has come."""

    verb: ClassVar[str] = "record"
    wave: ClassVar[Wave] = Wave.CLOSE

    interruption: Interruption


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminateInstance(AboutNode):
    """Terminate an empty instance by name, and close its interruption.

    Only after a recommendation without a deadline, or where we added the node, and only in groups
    whose owner marked them with the tag `plimsoll.dev/renew: "true"`.
    """

    verb: ClassVar[str] = "terminate-instance"
    event: ClassVar[str | None] = "InstanceTerminated"
    wave: ClassVar[Wave] = Wave.CLOSE

    interruption: Interruption
    """Already marked as closed."""
    shrunk: NodeGroup | None = None
    """Its group, if that shall have one node less, as before we added one; else it launches another."""

    @property
    @override
    def target(self) -> str:
        """The node and its instance."""
        return f"Node {self.node.name} ({self.node.instance})"


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutHooks(AboutNode):
    """What actions on the lifecycle hooks of an instance have in common."""

    interruption: Interruption
    """As it is to be recorded when the hooks have been told."""
    hooks: tuple[LifecycleHook, ...]
    """Our own, as Auto Scaling names them: never those of a record, which anybody may write."""

    @property
    @override
    def target(self) -> str:
        """The instance and the hooks that hold it."""
        hooks = ", ".join(f"{hook.name} of {hook.group}" for hook in self.hooks)
        return f"{self.node.instance} ({hooks})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat(AboutHooks):
    """Let an instance wait longer for its hooks, because pods are still on it.

    Source: https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks-overview.html
    """

    verb: ClassVar[str] = "heartbeat"
    wave: ClassVar[Wave] = Wave.CORDON


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteLifecycle(AboutHooks):
    """Tell Auto Scaling that an instance is drained, then record that.

    Both in one action, so that a completion that failed is tried again in the next round.
    Source: https://docs.aws.amazon.com/autoscaling/ec2/userguide/completing-lifecycle-hooks.html
    """

    verb: ClassVar[str] = "complete-lifecycle"
    event: ClassVar[str | None] = "LifecycleCompleted"
    wave: ClassVar[Wave] = Wave.CLOSE


type Action = (
    Cordon
    | Uncordon
    | LabelNode
    | Exclude
    | TaintNode
    | Grow
    | Release
    | UndoRelease
    | Evict
    | ForceDelete
    | OutOfService
    | SetDeletionCost
    | MarkMoved
    | DoNotDisrupt
    | TellDeadline
    | InjectFloors
    | Guard
    | Unguard
    | Record
    | TerminateInstance
    | Heartbeat
    | CompleteLifecycle
)
"""Every action. The executor takes no other."""
