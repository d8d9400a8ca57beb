"""The kinds of Kubernetes objects in drills: their fields, the defaults of an API server, and what it refuses.

Names, limits and defaults follow the Kubernetes API reference
(https://kubernetes.io/docs/reference/kubernetes-api/), as far as a drill reads them; the fields
that no drill reads are named, and accepted as they stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, override

from pydantic import Field

from plimsoll_simulation.declared import Contradiction, Name
from plimsoll_simulation.scenario.object_fields import (
    Amounts,
    KubernetesObject,
    LabelSelector,
    ObjectFields,
    PodsOrShare,
    Positive,
    Strings,
    Whole,
    among,
)
from plimsoll_simulation.scenario.workloads import (
    DaemonSet,
    Deployment,
    Job,
    PersistentVolumeClaim,
    Pod,
    ReplicaSet,
    StatefulSet,
)


class ScaleTarget(ObjectFields):
    api_version: str | None = None
    kind: Literal["Deployment", "StatefulSet"]
    name: Name


class HorizontalPodAutoscalerSpec(ObjectFields, extra="allow"):
    __pydantic_extra__: dict[Annotated[str, among("metrics behavior")], Any]
    scale_target_ref: ScaleTarget
    min_replicas: Whole = 1
    max_replicas: Positive

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        if self.min_replicas > self.max_replicas:
            yield Contradiction(
                path=("minReplicas",),
                found=f"minReplicas {self.min_replicas} over maxReplicas {self.max_replicas}",
                allowed=f"at most {self.max_replicas}",
                cure="Raise maxReplicas or lower minReplicas",
            )


class HorizontalPodAutoscaler(KubernetesObject):
    spec: HorizontalPodAutoscalerSpec


class PodDisruptionBudgetSpec(ObjectFields):
    min_available: PodsOrShare | None = None
    max_unavailable: PodsOrShare | None = None
    selector: LabelSelector
    unhealthy_pod_eviction_policy: Literal["IfHealthyBudget", "AlwaysAllow"] | None = None

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        given = {"min_available", "max_unavailable"} & self.model_fields_set
        if len(given) != 1:
            yield Contradiction(
                path=(),
                found="both minAvailable and maxUnavailable" if given else "neither of them",
                allowed="exactly one of minAvailable and maxUnavailable",
                cure="Remove one" if given else "Add one",
            )


class PodDisruptionBudget(KubernetesObject):
    spec: PodDisruptionBudgetSpec


class ServiceSpec(ObjectFields, extra="allow"):
    selector: Strings | None = None
    type: Literal["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"] = "ClusterIP"


class Service(KubernetesObject):
    spec: ServiceSpec


class PersistentVolumeSpec(ObjectFields, extra="allow"):
    capacity: Amounts
    access_modes: Annotated[tuple[str, ...], Field(min_length=1)]
    storage_class_name: str | None = None
    node_affinity: dict[str, Any] | None = None
    claim_ref: dict[str, Any] | None = None
    volume_mode: Any = "Filesystem"
    persistent_volume_reclaim_policy: Any = "Retain"


class PersistentVolume(KubernetesObject):
    spec: PersistentVolumeSpec


class StorageClass(KubernetesObject):
    provisioner: str
    parameters: Strings | None = None
    reclaim_policy: Literal["Delete", "Retain"] = "Delete"
    mount_options: tuple[str, ...] | None = None
    allow_volume_expansion: bool | None = None
    volume_binding_mode: Literal["Immediate", "WaitForFirstConsumer"] = "Immediate"
    allowed_topologies: tuple[Any, ...] | None = None


class CSINode(KubernetesObject):
    spec: dict[str, Any]


class ConfigMap(KubernetesObject):
    data: Strings | None = None
    binary_data: Strings | None = None
    immutable: bool | None = None


class Namespace(KubernetesObject):
    spec: dict[str, Any] = Field(default_factory=lambda: {"finalizers": ["kubernetes"]})


class MutatingAdmissionPolicy(KubernetesObject):
    spec: dict[str, Any]


class MutatingAdmissionPolicyBinding(KubernetesObject):
    spec: dict[str, Any]


class ResourceQuotaSpec(ObjectFields):
    hard: Amounts
    scopes: tuple[str, ...] | None = None
    scope_selector: dict[str, Any] | None = None


class ResourceQuota(KubernetesObject):
    spec: ResourceQuotaSpec


class LimitRange(KubernetesObject):
    spec: dict[str, Any]


class RuntimeClass(KubernetesObject):
    handler: str
    overhead: dict[str, Any] | None = None
    scheduling: dict[str, Any] | None = None


class MutatingWebhookConfiguration(KubernetesObject):
    webhooks: tuple[dict[str, Any], ...] = ()


class ValidatingWebhookConfiguration(KubernetesObject):
    webhooks: tuple[dict[str, Any], ...] = ()


class PodGroup(KubernetesObject):
    spec: dict[str, Any]


class PriorityClass(KubernetesObject):
    value: Annotated[int, Field(ge=-(2**31), le=1_000_000_000)]
    global_default: bool = False
    description: str | None = None
    preemption_policy: Literal["Never", "PreemptLowerPriority"] = "PreemptLowerPriority"


_VERSIONS: Final[Mapping[type[KubernetesObject], str]] = {
    Deployment: "apps/v1",
    ReplicaSet: "apps/v1",
    StatefulSet: "apps/v1",
    DaemonSet: "apps/v1",
    Job: "batch/v1",
    Pod: "v1",
    HorizontalPodAutoscaler: "autoscaling/v2",
    PodDisruptionBudget: "policy/v1",
    Service: "v1",
    PersistentVolumeClaim: "v1",
    PersistentVolume: "v1",
    StorageClass: "storage.k8s.io/v1",
    CSINode: "storage.k8s.io/v1",
    ConfigMap: "v1",
    Namespace: "v1",
    MutatingAdmissionPolicy: "admissionregistration.k8s.io/v1",
    MutatingAdmissionPolicyBinding: "admissionregistration.k8s.io/v1",
    PodGroup: "scheduling.k8s.io/v1beta1",
    PriorityClass: "scheduling.k8s.io/v1",
    ResourceQuota: "v1",
    LimitRange: "v1",
    RuntimeClass: "node.k8s.io/v1",
    MutatingWebhookConfiguration: "admissionregistration.k8s.io/v1",
    ValidatingWebhookConfiguration: "admissionregistration.k8s.io/v1",
}
MODELS: Final = {model.__name__: model for model in _VERSIONS}
KINDS: Final = {model.__name__: version for model, version in _VERSIONS.items()}
"""Kinds that manifests may hold, and the API version of each."""

COUNTED = frozenset({"Deployment", "ReplicaSet", "StatefulSet"})
"""Kinds whose Ready replicas are measured."""
LISTED = frozenset({"Job", "Pod"})
"""Kinds that are listed without a ready floor: only their `pods_*` figures count."""
