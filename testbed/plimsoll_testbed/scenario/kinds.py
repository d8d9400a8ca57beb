"""The kinds of Kubernetes objects in drills."""

from __future__ import annotations

from collections.abc import Mapping

KINDS: Mapping[str, str] = {
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "Pod": "v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "PodDisruptionBudget": "policy/v1",
    "Service": "v1",
    "PersistentVolumeClaim": "v1",
    "PersistentVolume": "v1",
    "StorageClass": "storage.k8s.io/v1",
    "ConfigMap": "v1",
    "Namespace": "v1",
    "PriorityClass": "scheduling.k8s.io/v1",
}
"""Kinds that manifests may hold, and the API version of each."""

COUNTED = frozenset({"Deployment", "ReplicaSet", "StatefulSet"})
"""Kinds whose Ready replicas are measured."""
LISTED = frozenset({"Job", "Pod"})
"""Kinds that are listed without a ready floor: only their `pods_*` figures count."""
