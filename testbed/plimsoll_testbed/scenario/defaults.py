"""The defaults that an API server fills in, as far as a drill reads them.

Sources:
    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/deployment-v1/
    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/stateful-set-v1/
    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/daemon-set-v1/
    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/
    https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/ (a limit without
    a request is the request too)
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

_ROLLING = {"type": "RollingUpdate"}

SPEC_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "Deployment": {
        "replicas": 1,
        "minReadySeconds": 0,
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
        "strategy": _ROLLING,
    },
    "ReplicaSet": {"replicas": 1, "minReadySeconds": 0},
    "StatefulSet": {
        "replicas": 1,
        "minReadySeconds": 0,
        "revisionHistoryLimit": 10,
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": _ROLLING,
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    },
    "Job": {"parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False},
    "HorizontalPodAutoscaler": {"minReplicas": 1},
    "DaemonSet": {"minReadySeconds": 0, "revisionHistoryLimit": 10, "updateStrategy": _ROLLING},
    "Service": {"type": "ClusterIP"},
    "PersistentVolumeClaim": {"volumeMode": "Filesystem"},
    "PersistentVolume": {"volumeMode": "Filesystem", "persistentVolumeReclaimPolicy": "Retain"},
}
ROLLING_DEFAULTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "Deployment": ("strategy", {"maxUnavailable": "25%", "maxSurge": "25%"}),
    "StatefulSet": ("updateStrategy", {"partition": 0}),
    "DaemonSet": ("updateStrategy", {"maxUnavailable": 1, "maxSurge": 0}),
}
TOP_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    "PriorityClass": {"globalDefault": False, "preemptionPolicy": "PreemptLowerPriority"},
    "Namespace": {"spec": {"finalizers": ["kubernetes"]}},
}
POD_DEFAULTS: Mapping[str, Any] = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "securityContext": {},
}


def fill(kind: str, body: dict[str, Any]) -> None:
    """Fill the defaults into an object whose shape was checked, in place."""
    metadata = body["metadata"]
    metadata.setdefault("labels", {})
    metadata.setdefault("annotations", {})
    _fill(body, TOP_DEFAULTS.get(kind, {}))
    spec = body.get("spec")
    if spec is None:
        return
    if kind == "Pod":
        fill_pod(body)
    if kind == "Job" and "completions" not in spec:
        # Without it a Job is done when one pod says so. Here none ever does: all go on side by side.
        spec["completions"] = spec.get("parallelism", 1)
    _fill(spec, SPEC_DEFAULTS.get(kind, {}))
    if kind in ROLLING_DEFAULTS:
        name, settings = ROLLING_DEFAULTS[kind]
        strategy = spec[name]
        strategy.setdefault("type", "RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            _fill(strategy.setdefault("rollingUpdate", {}), settings)
    if "template" in spec:
        fill_pod(spec["template"])
    for claim in spec.get("volumeClaimTemplates", ()):
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("kind", "PersistentVolumeClaim")
        claim["spec"].setdefault("volumeMode", "Filesystem")


def fill_pod(template: dict[str, Any]) -> None:
    """Fill the defaults into a pod or pod template, in place."""
    metadata = template.setdefault("metadata", {})
    metadata.setdefault("labels", {})
    metadata.setdefault("annotations", {})
    spec = template["spec"]
    _fill(spec, POD_DEFAULTS)
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        resources = container.setdefault("resources", {})
        if "limits" in resources:
            _fill(resources.setdefault("requests", {}), resources["limits"])
    for toleration in spec.get("tolerations", ()):
        toleration.setdefault("operator", "Equal")


def _fill(target: dict[str, Any], defaults: Mapping[str, Any]) -> None:
    for name, value in defaults.items():
        if target.get(name) is None:
            target[name] = copy.deepcopy(value)
