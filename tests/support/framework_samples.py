"""One object of each kind that queues hold beside Jobs, small enough to change in a test."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from plimsoll_batch.adapters.kubernetes.framework_reader import (
    FrameworkObject,
    framework_reader,
    outermost,
)
from plimsoll_batch.adapters.kubernetes.pod_admission import PodAdmission
from plimsoll_batch.domain.frameworks import FRAMEWORKS, Framework
from plimsoll_batch.domain.jobs import Job

type Json = dict[str, Any]

ROWS = {row.kind: row for row in FRAMEWORKS}


def a_pod(cpu: str = "1") -> Json:
    """Return a template of pods."""
    requests = {"requests": {"cpu": cpu}}
    return {"spec": {"containers": [{"name": "main", "resources": requests}]}}


def _job(cpu: str, **spec: Any) -> Json:
    return {"spec": {**spec, "template": a_pod(cpu)}}


def _replicas(**pods: int) -> Json:
    return {role: {"replicas": count, "template": a_pod()} for role, count in pods.items()}


_RAY: Json = {
    "headGroupSpec": {"template": a_pod("2")},
    "workerGroupSpecs": [
        {"groupName": "gpus", "replicas": 3, "numOfHosts": 2, "template": a_pod("4")},
        {"groupName": "spare", "template": a_pod("4")},
    ],
}
_SPECS: dict[str, Json] = {
    "JobSet": {
        "suspend": True,
        "replicatedJobs": [
            {"name": "driver", "template": _job("1")},
            {
                "name": "workers",
                "replicas": 2,
                "template": _job("4", parallelism=4, completions=3),
            },
        ],
    },
    "RayJob": {"suspend": True, "shutdownAfterJobFinishes": True, "rayClusterSpec": _RAY},
    "RayCluster": {"suspend": True, **_RAY},
    "TrainJob": {"suspend": True, "runtimeRef": {"name": "torch"}},
    "PyTorchJob": {
        "runPolicy": {"suspend": True},
        "pytorchReplicaSpecs": _replicas(Master=1, Worker=3),
    },
    "TFJob": {
        "runPolicy": {"suspend": True},
        "tfReplicaSpecs": _replicas(Chief=1, PS=2, Worker=3),
    },
    "XGBoostJob": {"runPolicy": {"suspend": True}, "xgbReplicaSpecs": _replicas(Master=1)},
    "PaddleJob": {"runPolicy": {"suspend": True}, "paddleReplicaSpecs": _replicas(Worker=2)},
    "JAXJob": {"runPolicy": {"suspend": True}, "jaxReplicaSpecs": _replicas(Worker=2)},
    "MPIJob": {
        "runPolicy": {"suspend": True},
        "mpiReplicaSpecs": _replicas(Launcher=1, Worker=4),
    },
    "SparkApplication": {
        "suspend": True,
        "type": "Scala",
        "mode": "cluster",
        "driver": {"cores": 1, "memory": "1g"},
        "executor": {"cores": 2, "coreRequest": "1500m", "memory": "8g", "instances": 5},
    },
}


def sample(kind: str, name: str = "train", *, queue: str | None = "lab") -> Json:
    """Return an object of a kind, suspended and in a queue."""
    row = ROWS[kind]
    return {
        "apiVersion": row.api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "lab",
            "uid": f"{kind}-{name}",
            "resourceVersion": "7",
            "creationTimestamp": "2026-11-17T12:00:00Z",
            "labels": {"plimsoll.dev/queue": queue} if queue else {},
        },
        "spec": deepcopy(_SPECS[kind]),
    }


def owned_by(owner: Json, child: Json) -> Json:
    """Return an object whose controller is another one."""
    meta = owner["metadata"]
    reference = {
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }
    return {**child, "metadata": {**child["metadata"], "ownerReferences": [reference]}}


def parsed(obj: Json, admission: PodAdmission | None = None) -> FrameworkObject:
    """Read an object by the row of its kind."""
    row: Framework = ROWS[obj["kind"]]
    return framework_reader(row, admission or PodAdmission())(obj)


def jobs_of(*objects: Json) -> dict[str, Job]:
    """Return what is queued of some objects, by kind."""
    found = outermost([parsed(each) for each in objects], PodAdmission())
    return {job.ref.kind: job for job in found}
