"""Pods as the planner and the scheduler's predicates see them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, override

from plimsoll.domain.kubernetes.names import (
    DO_NOT_DISRUPT,
    HASHES,
    PROTECTED,
    RELEASED,
    RELEASED_FOR_PLACEMENT,
)
from plimsoll.domain.kubernetes.quantities import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One line of a label selector or of node affinity.

    Operators: In, NotIn, Exists, DoesNotExist, and for nodes Gt and Lt.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """A label selector: all labels and all requirements hold. An empty one selects everything."""

    labels: Mapping[str, str] = field(default_factory=dict)
    requirements: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """A toleration; an empty key with Exists tolerates everything."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTerm:
    """A required pod affinity or anti-affinity term.

    Without `namespaces` and `namespace_selector` it looks at the pod's own namespace.
    """

    topology_key: str
    selector: Selector
    namespaces: tuple[str, ...] = ()
    namespace_selector: Selector | None = None
    """Namespaces by label, besides those named; an empty one selects all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadConstraint:
    """A topology spread constraint. Only DoNotSchedule decides whether a pod fits."""

    max_skew: int
    topology_key: str
    hard: bool
    selector: Selector
    min_domains: int | None = None
    match_label_keys: tuple[str, ...] = ()
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTerm:
    """One term of required node affinity: all its expressions and fields hold."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduling:
    """Everything in a pod's spec that decides where it may run. Shared by the pods of a template."""

    requests: Resources
    node_selector: Mapping[str, str] = field(default_factory=dict)
    node_terms: tuple[NodeTerm, ...] | None = None
    """Required node affinity: any term may hold. None: no such affinity."""
    tolerations: tuple[Toleration, ...] = ()
    affinity: tuple[PodTerm, ...] = ()
    anti_affinity: tuple[PodTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    claims: tuple[str, ...] = ()
    """Names of the PersistentVolumeClaims it mounts, in its own namespace."""
    ephemeral: tuple[str, ...] = ()
    """Names of generic ephemeral volumes that bind a pod to no node: it has one, or its replacement gets new ones."""
    host_ports: tuple[tuple[str, int, str], ...] = ()
    """(protocol, port, address) taken on the host; an empty address stands for all of them."""
    devices: bool = False
    """Whether it claims devices (DRA), of which nothing here tells where they are: it is never taken to fit."""


class OwnerKind(StrEnum):
    """Who makes a pod anew. The values are the kinds of Kubernetes."""

    DEPLOYMENT = "Deployment"
    ROLLOUT = "Rollout"
    """Of Argo Rollouts; its pods belong to ReplicaSets, as those of a Deployment do."""
    REPLICA_SET = "ReplicaSet"
    STATEFUL_SET = "StatefulSet"
    DAEMON_SET = "DaemonSet"
    JOB = "Job"
    NODE = "Node"
    """A mirror pod of a static pod."""


_RELEASES = {OwnerKind.DEPLOYMENT, OwnerKind.REPLICA_SET}
"""Owners of released pods. A ReplicaSet takes its own reference off a moment later."""


class Ref(NamedTuple):
    """A reference to an object in a namespace, as `kind namespace/name`.

    A tuple, because it is hashed many times for each pod, and tuples are hashed in C.
    """

    kind: str
    namespace: str
    name: str

    @override
    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodGroup:
    """The group in which kube-scheduler places a pod (`spec.schedulingGroup`, a PodGroup of scheduling.k8s.io).

    https://kubernetes.io/docs/concepts/workloads/workload-api/
    """

    ref: Ref
    min_count: int | None = None
    """How many of its pods are placed together or none: 1 with the policy `basic`. None: nobody knows its object,
    and without one kube-scheduler places none of its pods."""
    together: bool = False
    """Whether all of its pods are preempted together (`disruptionMode: all`)."""
    priority: int = 0
    """What it preempts by, and is preempted by: those of its pods count for nothing there."""

    @property
    def is_gang(self) -> bool:
        """Whether more than one of its pods has to be placed at once, as far as anybody knows."""
        return self.min_count != 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)
    owner: Ref | None = None
    """The direct controller, for example its ReplicaSet."""
    node: str | None = None
    phase: str = "Pending"
    ready: bool = False
    """The Ready condition. A terminating pod may still be ready here: see `serving`."""
    ready_since: datetime | None = None
    """When the Ready condition last changed."""
    deleting: datetime | None = None
    """When its grace period ends (deletionTimestamp), once it was asked to stop."""
    stopping_since: datetime | None = None
    """When it was asked to stop."""
    started: datetime | None = None
    """When its kubelet acknowledged it (`status.startTime`): Karpenter counts its age from there."""
    start_seconds: int | None = None
    """How long it took from its node to Ready; None while it is not Ready, and where it does not tell."""
    created: datetime
    grace_seconds: int = 30
    """Its termination grace period: the most that it may take to stop."""
    stated_stop_seconds: int | None = None
    """How long it needs to stop, as its owner states, at most its grace period."""
    checkpoint_seconds: int | None = None
    """How long one checkpoint of its gang takes, as its owner states."""
    hook_seconds: int | None = None
    """For how long its preStop hooks sleep at least, as far as their commands tell; None: no hook sleeps."""
    generate_name: str = ""
    """The name of its ReplicaSet and a dash, for a pod that a ReplicaSet made. It never changes."""
    priority: int = 0
    preempts: bool = True
    """Whether kube-scheduler lets pods of lower priority go for it: not with `preemptionPolicy: Never`."""
    mirror: bool = False
    gated: bool = False
    """Behind a scheduling gate: kube-scheduler leaves it alone.
    https://kubernetes.io/docs/concepts/scheduling-eviction/pod-scheduling-readiness/"""
    foreign: bool = False
    """Whether another scheduler than kube-scheduler's default is to place it: Fargate's or Volcano's, for example."""
    priority_class: str = ""
    terminates: bool = False
    """Whether it has an `activeDeadlineSeconds`."""
    restarts: bool = True
    """Whether its containers are started again: not with `restartPolicy: Never`."""
    group: PodGroup | None = None
    scheduling: Scheduling
    unread: str | None = None
    """Why its scheduling could not be read: nobody knows where it fits, so it leaves at its eviction deadline."""

    @property
    def serving(self) -> bool:
        """Ready, and not asked to stop."""
        return self.ready and self.deleting is None

    @property
    def released(self) -> bool:
        """Whether its ReplicaSet was made to let go of it for a replacement, and still has."""
        marked = RELEASED in self.annotations and self.labels.keys().isdisjoint(HASHES)
        return marked and (self.owner is None or self.owner.kind in _RELEASES)

    @property
    def released_for_placement(self) -> bool:
        """Whether it was released to move to another spread group."""
        return self.released and self.annotations[RELEASED] == RELEASED_FOR_PLACEMENT

    @property
    def of_daemon_set(self) -> bool:
        """Whether each suitable node gets one of its kind."""
        return self.owner is not None and self.owner.kind == OwnerKind.DAEMON_SET

    @property
    def of_stateful_set(self) -> bool:
        """Whether its successor has its name, and so is made only when it is gone."""
        return self.owner is not None and self.owner.kind == OwnerKind.STATEFUL_SET

    @property
    def bare(self) -> bool:
        """Whether no controller made it, and none makes it anew."""
        return self.owner is None and not self.released

    @property
    def alone(self) -> bool:
        """Whether no others serve beside it, and it may finish or checkpoint: bare, of a Job, or never restarted."""
        return self.bare or self.of_job or not self.restarts

    @property
    def of_job(self) -> bool:
        """Whether a Job made it, and may count its end as a failure."""
        return self.owner is not None and self.owner.kind == OwnerKind.JOB

    @property
    def finished(self) -> bool:
        """Succeeded or Failed: it holds no resources and needs no replacement."""
        return self.phase in {"Succeeded", "Failed"}

    @property
    def held_by_finalizers(self) -> bool:
        """Whether it was deleted and has no grace period left: another deletion changes nothing."""
        return self.deleting is not None and self.deleting == self.stopping_since

    @property
    def pending(self) -> bool:
        """Waiting for kube-scheduler to find a node: not behind a gate, nor for another scheduler."""
        waits = self.node is None and not self.gated and not self.foreign
        return waits and not self.finished and self.deleting is None

    @override
    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def in_groups(pods: Sequence[Pod], groups: Iterable[PodGroup]) -> Sequence[Pod]:
    """Return the pods with what is known of their groups, and with how these preempt.

    A group preempts by its own priority, and not at all where one of its pods never does.
    """
    known = {group.ref: group for group in groups}
    never = {pod.group.ref for pod in pods if pod.group is not None and not pod.preempts}
    return [
        replace(pod, group=group, priority=group.priority, preempts=group.ref not in never)
        if pod.group is not None and (group := known.get(pod.group.ref)) is not None
        else pod
        for pod in pods
    ]


def protection(pod: Pod, duration: str | None) -> Mapping[str, str | None]:
    """Return the annotations with which Karpenter leaves a pod to us up to an age; None takes off what we set.

    The value of ours says which other is ours: an owner may have changed that one meanwhile.
    """
    if duration is not None:
        return {DO_NOT_DISRUPT: duration, PROTECTED: duration}
    ours = pod.annotations.get(PROTECTED)
    unchanged = pod.annotations.get(DO_NOT_DISRUPT) == ours
    return {} if ours is None else dict.fromkeys([PROTECTED, *[DO_NOT_DISRUPT] * unchanged])


def replacement_of(pod: Pod) -> Pod:
    """Return the pod that would be made anew for this one: its own uid, no node, not ready.

    Plan with it while the old pod still runs; plan with `successor_of` when the old pod leaves first.
    """
    return replace(
        pod, uid=f"new:{pod.uid}", node=None, phase="Pending", ready=False, deleting=None
    )


def successor_of(pod: Pod) -> Pod:
    """Return the pod that takes the place of this one in a plan: by the same uid, since one of the two stands at a time.

    A pod that is asked to stop counts in no topology spread; its successor does.
    """
    return pod if pod.deleting is None else replace(pod, deleting=None)
