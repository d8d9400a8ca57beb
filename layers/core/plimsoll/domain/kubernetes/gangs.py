"""Gangs: pods that lose their work together, under our queues or under other controllers.

Labels tell which, and tenants write labels. So a gang never leaves its namespace, and a pod is one of it only if its
controlling owner has the kind and the name that the label stands for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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
    ("ray.io/cluster", "RayCluster", "RayCluster"),
    (LEADER_WORKER_SET, "LeaderWorkerSet", "StatefulSet"),
)
"""Label with the name of a gang, its kind, and how the kind of the pod's own controller ends.

A Kubeflow TrainJob makes a JobSet of its name, and a RayJob a RayCluster. The controllers of version 1 of Kubeflow are
PyTorchJob, TFJob and others; that of a launcher of MPI is a Job.
https://github.com/kubernetes-sigs/jobset/blob/main/api/jobset/v1alpha2/jobset_types.go
https://github.com/kubeflow/trainer/blob/release-1.9/pkg/apis/kubeflow.org/v1/common_types.go
https://github.com/ray-project/kuberay/blob/master/ray-operator/controllers/ray/utils/constant.go
https://github.com/kubernetes-sigs/lws/blob/main/api/leaderworkerset/v1/leaderworkerset_types.go"""
_GENERATED: Final = re.compile(r"(-raycluster)?(-([bcdfghjklmnpqrstvwxz2456789]{5}|[0-9]+))+$")
"""What generateName, a CronJob, a LeaderWorkerSet and KubeRay put behind a name.
https://github.com/kubernetes/apimachinery/blob/master/pkg/util/rand/rand.go"""


def gang_of(pod: Pod) -> Ref | None:
    """Return the gang of a pod that no queue of ours runs; None where it is of none.

    Of a LeaderWorkerSet each group is one, of an Indexed Job all pods.
    """
    owner, labels = pod.owner, pod.labels
    if owner is None or owner.kind == OwnerKind.REPLICA_SET or not _OF_QUEUES.isdisjoint(labels):
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


def pods_to_tell(
    pods: Sequence[Pod],
    deadline: datetime | None,
    now: datetime,
    *,
    stated: int,
    observed: int | None,
) -> Sequence[Pod]:
    """Return the pods of a gang on which this deadline does not stand yet.

    There are none where the gang was not told before and can write no checkpoint any more. It is told where nobody
    knows how long a checkpoint takes.

    Args:
        pods: all of the gang.
        deadline: when the first of its nodes goes; None: none goes any more, and what stands there is taken off.
        now: the present.
        stated: seconds that a checkpoint takes, as its owner says; where they do, nothing else counts.
        observed: seconds from the notice until its pods had ended by themselves, in earlier runs.
    """
    if deadline is not None and not is_told(pods) and _too_late(deadline - now, stated, observed):
        return ()
    text = None if deadline is None else deadline_text(deadline)
    return [p for p in pods if p.deleting is None and p.annotations.get(DEADLINE) != text]


def _too_late(left: timedelta, stated: int, observed: int | None) -> bool:
    """Whether a checkpoint takes longer than is left. Only what was observed holds the lag already."""
    if stated:
        return left - LAG < timedelta(seconds=stated)
    return observed is not None and left < timedelta(seconds=observed)
