"""Which pods of an interrupted node are ours to move, and how far their owners let us go."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, override

from plimsoll.domain.disruptions.workload_disruption import PATIENCE
from plimsoll.domain.kubernetes import (
    IGNORE,
    NEVER_OVERRULED,
    OVERRULE_BUDGETS,
    UNSCHEDULABLE,
    Node,
    Pod,
    Ref,
    is_ignored,
    misread_mark,
    tolerated,
)
from plimsoll.domain.observation import Observation, leaves

_SECOND: Final = timedelta(seconds=1)
"""Kubernetes tells a time of creation in whole seconds, cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptOut:
    """A pod that is left alone, whatever becomes of its node."""

    pod: Pod
    why: str

    @override
    def __str__(self) -> str:
        return f"{self.pod} ({self.why})"


def why_opted_out(seen: Observation, pod: Pod) -> str | None:
    """Return why a pod is left alone: for its namespace, the workload or the pod; None where it is not.

    A pod whose template names its node would come back to it at each eviction, past kube-scheduler.
    """
    if seen.policy.observes(pod.namespace):
        return f"the namespace {pod.namespace} is observed only"
    if is_ignored(*marks_of(seen, pod)):
        return f"its owner opted out with {IGNORE}"
    owner = seen.owner(pod)
    workload = None if owner is None else seen.workload.get(owner)
    if workload is not None and workload.pinned_to and workload.pinned_to == pod.node:
        return f"the template of its {workload.ref.kind} names the node, so it would come back"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class MisreadOptOut:
    """A workload whose owner may have meant to opt out, and did not."""

    workload: Ref
    said: str

    @property
    def says(self) -> str:
        """What follows, in words."""
        return f"{IGNORE} has the value {self.said[:63]!r}, which opts out of nothing"

    @property
    def cure(self) -> str:
        """What its owner can change."""
        return f'set {IGNORE}: "true", or remove it'


def misread_opt_outs(seen: Observation, nodes: Collection[str]) -> Iterator[MisreadOptOut]:
    """Yield the workloads with pods on these nodes whose mark says neither yes nor no, by name."""
    found = {
        seen.workload_of(pod): said
        for name in nodes
        for pod in seen.on_node.get(name, ())
        if (said := misread_mark(*marks_of(seen, pod))) is not None
        if leaves(pod) and why_opted_out(seen, pod) is None
    }
    for workload, said in sorted(found.items()):
        yield MisreadOptOut(workload=workload, said=said)


def marks_of(seen: Observation, pod: Pod) -> Iterator[Mapping[str, str]]:
    """Yield the labels and annotations by which the owner of a pod says something."""
    yield from (pod.labels, pod.annotations)
    owner = seen.owner(pod)
    if owner is not None and (workload := seen.workload.get(owner)) is not None:
        yield from (workload.labels, workload.annotations)


def never_overruled(seen: Observation, pod: Pod) -> bool:
    """Whether its owner lets nobody delete it past its budget: for the cluster, the namespace, the workload or the pod."""
    if seen.policy.obeys_budgets or pod.namespace in seen.obeying:
        return True
    return any(marks.get(OVERRULE_BUDGETS) == NEVER_OVERRULED for marks in marks_of(seen, pod))


def must_leave(seen: Observation, pod: Pod, node: Node) -> bool:
    """Whether a pod has to leave this node, which is interrupted, and is ours to move."""
    return leaves(pod) and why_opted_out(seen, pod) is None and not _came_too_late(pod, node)


def has_returned(pod: Pod, node: Node) -> bool:
    """Whether a pod came to an interrupted node after its cordon.

    Evicting it would send it in circles, once a second, until the instance goes.
    """
    cordoned = None if node.interruption is None else node.interruption.cordoned
    if cordoned is None or pod.created + _SECOND <= cordoned:
        return False
    return tolerated(UNSCHEDULABLE, pod.scheduling.tolerations)


def _came_too_late(pod: Pod, node: Node) -> bool:
    """Whether a pod came to a node whose instance was gone: it never ran, and nothing that is done would keep it away."""
    gone = None if node.interruption is None else node.interruption.gone
    return gone is not None and pod.created + _SECOND > gone and has_returned(pod, node)


def left_on(seen: Observation, node: Node) -> list[Pod]:
    """Pods that must leave and have not, the stopping ones too."""
    return [pod for pod in seen.on_node.get(node.name, ()) if must_leave(seen, pod, node)]


def died_on(seen: Observation, node: Node) -> list[Pod]:
    """Return the pods that a node held when its instance was gone, those of owners who opted out too."""
    here = seen.on_node.get(node.name, ())
    return [pod for pod in here if leaves(pod) and not _came_too_late(pod, node)]


def left_to_pod_gc(node: Node, pod: Pod, now: datetime) -> bool:
    """Whether nothing more is done about a dead pod: a Job's that was evicted, or that nobody let go for ten minutes.

    Its object stays until PodGC has written that it failed. A delete could not take it away sooner where the
    Job has a podFailurePolicy, since its finalizer stays until then. By then taint eviction has told it to go,
    past its budget and with the condition DisruptionTarget: 300 s after its node was not Ready.
    Source: k8s.io/kubernetes/pkg/controller/job/job_controller.go (isPodFailed), pkg/controller/podgc
    """
    gone = node.interruption and node.interruption.gone
    return pod.of_job and bool(pod.deleting or (gone and gone + 2 * PATIENCE <= now))


def opted_out_on(seen: Observation, node: Node) -> list[OptOut]:
    """Pods that are left alone, each with the reason: a node that holds one is never empty."""
    return [
        OptOut(pod=pod, why=why)
        for pod in seen.on_node.get(node.name, ())
        if leaves(pod) and (why := why_opted_out(seen, pod)) is not None
    ]
