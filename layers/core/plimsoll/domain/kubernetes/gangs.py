"""Gangs: pods that lose their work together, under our queues or under other controllers.

Labels tell which, and tenants write labels. So a gang never leaves its namespace, and a pod is one of it only if its
controlling owner has the kind and the name that the label stands for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.kubernetes.names import DEADLINE, GANGS, LEADER_WORKER_SET, TRAINING_JOB
from plimsoll.domain.kubernetes.pods import OwnerKind, Pod, Ref

LAG: Final = timedelta(seconds=60)
"""How long it takes at most until a container reads what was written on its pod: the kubelet's period.
https://kubernetes.io/docs/concepts/workloads/pods/downward-api/"""
MOST_TOLD: Final = 500
"""Pods that one plan tells a deadline, the earliest first: the next plan tells the others."""

_GROUP: Final = "leaderworkerset.sigs.k8s.io/group-index"
_SERVES: Final = "ray.io/serve"
"""On the pods of a RayService, which serve and are no gang."""
_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_GANG: Final = "plimsoll.dev/gang"
_OF_QUEUES: Final = {_GANG, "plimsoll.dev/queue"}
"""Labels of pods whose gang the planner of the queues tells."""
_CONTROLLERS: Final = (
    ("jobset.sigs.k8s.io/jobset-name", "JobSet", "Job"),
    (TRAINING_JOB, "TrainingJob", "Job"),
    ("volcano.sh/job-name", "VolcanoJob", "Job"),
    ("ray.io/cluster", "RayCluster", "RayCluster"),
    (LEADER_WORKER_SET, "LeaderWorkerSet", "StatefulSet"),
)
"""Label with the name of a gang, its kind, and how the kind of the pod's own controller ends.

A Kubeflow TrainJob makes a JobSet of its name, and a RayJob a RayCluster. The controllers of version 1 of Kubeflow are
PyTorchJob, TFJob and others; that of a launcher of MPI is a Job.
https://github.com/kubernetes-sigs/jobset/blob/main/api/jobset/v1alpha2/jobset_types.go
https://github.com/kubeflow/trainer/blob/release-1.9/pkg/apis/kubeflow.org/v1/common_types.go
https://github.com/volcano-sh/apis/blob/master/pkg/apis/batch/v1alpha1/labels.go
https://github.com/ray-project/kuberay/blob/master/ray-operator/controllers/ray/utils/constant.go
https://github.com/kubernetes-sigs/lws/blob/main/api/leaderworkerset/v1/leaderworkerset_types.go"""
_GENERATED: Final = re.compile(r"(-raycluster)?(-([bcdfghjklmnpqrstvwxz2456789]{5}|[0-9]+))+$")
"""What generateName, a CronJob, a LeaderWorkerSet and KubeRay put behind a name.
https://github.com/kubernetes/apimachinery/blob/master/pkg/util/rand/rand.go"""


def gang_of(pod: Pod) -> Ref | None:
    """Return the gang of a pod that no queue of ours runs; None where it is of none.

    Of a LeaderWorkerSet each group is one, of an Indexed Job all pods, and a PodGroup whose policy is `gang`.
    """
    if not _OF_QUEUES.isdisjoint(pod.labels):
        return None
    # The controllers come first: a gang of theirs may be several PodGroups, and loses its work with any of them.
    found = _gang_of_controller(pod)
    if found is None and pod.group is not None and pod.group.is_gang:
        return pod.group.ref
    return found


def _gang_of_controller(pod: Pod) -> Ref | None:
    owner, labels = pod.owner, pod.labels
    if owner is None or owner.kind == OwnerKind.REPLICA_SET:
        return None
    for label, kind, ending in _CONTROLLERS:
        name = labels.get(label)
        if name and owner.kind.endswith(ending) and f"{owner.name}-".startswith(f"{name}-"):
            if kind == "RayCluster" and _SERVES in labels:
                return None
            group = f"-{labels.get(_GROUP)}" if kind == "LeaderWorkerSet" else ""
            return Ref(kind, pod.namespace, name + group)
    if owner.kind == OwnerKind.JOB and _INDEX in labels:
        return Ref("IndexedJob", pod.namespace, owner.name)
    return None


def queued_gang_of(pod: Pod) -> Ref | None:
    """Return the gang of a pod that a queue of ours runs; None where it is of none.

    The pods of a Job that names no gang are one by its name.
    """
    if _OF_QUEUES.isdisjoint(pod.labels):
        return None
    name = pod.labels.get(_GANG) or (pod.name if pod.owner is None else pod.owner.name)
    return Ref("QueuedGang", pod.namespace, name)


def class_of(gang: Ref) -> Ref:
    """Return what a gang has in common with those that run the same later: its name without what is generated."""
    return gang._replace(name=_GENERATED.sub("", gang.name) or gang.name)


def in_gang(pod: Pod) -> bool:
    """Whether a pod says that it is one of a gang, whoever runs that."""
    return not pod.labels.keys().isdisjoint(GANGS) or gang_of(pod) is not None


def deadline_text(deadline: datetime) -> str:
    """Return a deadline as it is written on pods."""
    return f"{deadline:%Y-%m-%dT%H:%M:%SZ}"


def is_told(pods: Iterable[Pod]) -> bool:
    """Whether a deadline stands on any pod of a gang."""
    return any(DEADLINE in pod.annotations for pod in pods)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreatenedGang[G]:
    """A gang, and when the first of its nodes goes."""

    gang: G
    """What its planner calls it."""
    pods: Sequence[Pod]
    """All of the gang."""
    deadline: datetime | None
    """When the first of its nodes goes; None: none goes any more, and what stands on its pods is taken off."""
    stated: int
    """Seconds that a checkpoint takes, as its owner says; where they do, nothing else counts."""
    observed: int | None
    """Seconds from the notice until its pods had ended by themselves, in earlier runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDeadline[G]:
    """What is to be written on one pod of a gang."""

    pod: Pod
    gang: G
    deadline: str | None
    """None: no node of its gang goes any more."""


def deadlines_to_tell[G](
    gangs: Iterable[ThreatenedGang[G]],
    now: datetime,
    *,
    opted_out: Callable[[Pod], bool] = lambda _: False,
) -> Sequence[PodDeadline[G]]:
    """Return what has to be written on pods of gangs now; what stands there already is not written again.

    Args:
        gangs: those with a node that goes, and those whose pods say that one does.
        now: the present.
        opted_out: whether nothing is written on a pod.
    """
    found: list[tuple[tuple[str, int], PodDeadline[G]]] = []
    for one in gangs:
        text = None if one.deadline is None else deadline_text(one.deadline)
        told = [pod for pod in _pods_to_tell(one, text, now) if not opted_out(pod)]
        found += [
            ((text or "~", len(told)), PodDeadline(pod=pod, gang=one.gang, deadline=text))
            for pod in told
        ]
    # The nearest deadline first, since one plan tells `MOST_TOLD` pods. Of one deadline small gangs before large ones:
    # more gangs are then told as a whole. What is taken off comes last ("~" sorts after digits).
    found.sort(key=lambda each: each[0])
    return [one for _, one in found[:MOST_TOLD]]


def _pods_to_tell[G](one: ThreatenedGang[G], text: str | None, now: datetime) -> Sequence[Pod]:
    """Return the pods of a gang on which this deadline does not stand yet.

    There are none where the gang was not told before and can write no checkpoint any more. It is told where nobody
    knows how long a checkpoint takes.
    """
    end = one.deadline
    if end is not None and not is_told(one.pods) and _too_late(one, end - now):
        return ()
    return [p for p in one.pods if p.deleting is None and p.annotations.get(DEADLINE) != text]


def _too_late[G](one: ThreatenedGang[G], left: timedelta) -> bool:
    """Whether a checkpoint takes longer than is left. Only what was observed holds the lag already."""
    if one.stated:
        return left - LAG < timedelta(seconds=one.stated)
    return one.observed is not None and left < timedelta(seconds=one.observed)
