"""The kinds of Kubernetes objects in drills: their fields, the defaults of an API server, and what it refuses.

Names, limits and defaults follow the Kubernetes API reference
(https://kubernetes.io/docs/reference/kubernetes-api/), as far as a drill reads them; the fields
that no drill reads are named, and accepted as they stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, override

from pydantic import (
    AfterValidator,
    Field,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)

from plimsoll.adapters.kubernetes.objects import parse_selector
from plimsoll.domain.errors import BadInput
from plimsoll.domain.floors import resolve
from plimsoll.domain.quantities import parse_quantity
from plimsoll.domain.selectors import matches
from plimsoll_testbed.model.declared import (
    QUANTITY_FORM,
    Contradiction,
    Declared,
    Label,
    Name,
    repeated,
)
from plimsoll_testbed.model.durations import EXAMPLES, parse_duration
from plimsoll_testbed.model.hollow.controllers.kubelet import (
    NEVER_READY,
    RUN,
    STARTUP,
    STOP,
    USAGE,
)
from plimsoll_testbed.scenario.problems import listed, rename, shown

_PREFIX: Final = "drill.plimsoll.dev/"

type Whole = Annotated[int, Field(ge=0)]
type Positive = Annotated[int, Field(ge=1)]
type Strings = dict[str, str]
type Rolling = Literal["RollingUpdate", "OnDelete"]
type Effect = Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"]


def _amount(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("neither text nor a number")  # noqa: TRY004 - pydantic reports a ValueError
    try:
        negative = parse_quantity(str(value)) < 0
    except BadInput as error:
        raise ValueError(str(error)) from error
    if negative or str(value).startswith(("+", "-")):
        raise ValueError("negative, or with a sign")
    return value


def _pods_or_share(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("neither a number nor text")  # noqa: TRY004 - pydantic reports a ValueError
    try:
        resolve(value, 1, round_up=True)
    except BadInput as error:
        raise ValueError(str(error)) from error
    return value


type Amount = Annotated[int | float | str, PlainValidator(_amount), WithJsonSchema(QUANTITY_FORM)]
"""A quantity as it stands in the file: text, or a number."""
type Amounts = dict[str, Amount]
type PodsOrShare = Annotated[
    int | str,
    PlainValidator(_pods_or_share),
    WithJsonSchema(
        {"type": ["integer", "string"], "title": "a number of pods, or a percentage such as 25%"}
    ),
]


def _among(names: str) -> AfterValidator:
    """Return the check that a field is one of these, which no drill reads."""
    known = frozenset(names.split())

    def check(name: str) -> str:
        if name not in known:
            raise ValueError("an unknown field")
        return name

    return AfterValidator(check)


class LabelRequirement(Declared):
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] | None = None


class LabelSelector(Declared):
    match_labels: Strings | None = None
    match_expressions: tuple[LabelRequirement, ...] | None = None


class Metadata(Declared, extra="allow"):
    """Metadata of an object that has a name."""

    name: Name
    namespace: Label | None = None
    labels: Strings = Field(default_factory=dict)
    annotations: Strings = Field(default_factory=dict)


class ContainerResources(Declared, extra="allow"):
    """A limit without a request is the request too."""

    __pydantic_extra__: dict[Annotated[str, _among("claims")], Any]
    limits: Amounts | None = None
    requests: Amounts = Field(default_factory=dict, validate_default=True)

    @field_validator("requests")
    @classmethod
    def _limited(cls, requests: Amounts, info: ValidationInfo) -> Amounts:
        return {**(info.data.get("limits") or {}), **requests}


class Container(Declared, extra="allow"):
    __pydantic_extra__: dict[
        Annotated[
            str,
            _among(
                "args command env envFrom imagePullPolicy lifecycle livenessProbe ports "
                "readinessProbe resizePolicy restartPolicy restartPolicyRules securityContext "
                "startupProbe stdin stdinOnce terminationMessagePath terminationMessagePolicy tty "
                "volumeDevices volumeMounts workingDir"
            ),
        ],
        Any,
    ]
    name: Label
    image: Annotated[str, Field(min_length=1)]
    resources: ContainerResources = Field(
        default_factory=lambda: ContainerResources.model_validate({})
    )


class Affinity(Declared):
    node_affinity: dict[str, Any] | None = None
    pod_affinity: dict[str, Any] | None = None
    pod_anti_affinity: dict[str, Any] | None = None


class Toleration(Declared):
    key: str | None = None
    operator: Literal["Exists", "Equal", "Lt", "Gt"] = "Equal"
    value: str | None = None
    effect: Effect | None = None
    toleration_seconds: int | None = None


class SpreadConstraint(Declared):
    max_skew: Positive
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: LabelSelector | None = None
    min_domains: Positive | None = None
    match_label_keys: tuple[str, ...] | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] | None = None
    node_taints_policy: Literal["Honor", "Ignore"] | None = None


class ClaimOfVolume(Declared):
    claim_name: Name
    read_only: bool | None = None


class Volume(Declared, extra="allow"):
    name: Label
    persistent_volume_claim: ClaimOfVolume | None = None


class PodSpec(Declared, extra="allow"):
    __pydantic_extra__: dict[
        Annotated[
            str,
            _among(
                "activeDeadlineSeconds automountServiceAccountToken dnsConfig enableServiceLinks "
                "ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers hostname "
                "hostnameOverride imagePullSecrets nodeName os overhead preemptionPolicy "
                "readinessGates resourceClaims resources runtimeClassName schedulingGates "
                "serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace "
                "subdomain"
            ),
        ],
        Any,
    ]
    containers: Annotated[tuple[Container, ...], Field(min_length=1)]
    init_containers: tuple[Container, ...] | None = None
    termination_grace_period_seconds: Whole = 30
    node_selector: Strings | None = None
    restart_policy: Literal["Always", "OnFailure", "Never"] = "Always"
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    topology_spread_constraints: tuple[SpreadConstraint, ...] | None = None
    priority_class_name: str | None = None
    priority: int | None = None
    volumes: tuple[Volume, ...] | None = None
    dns_policy: Any = "ClusterFirst"
    scheduler_name: Any = "default-scheduler"
    security_context: Any = Field(default_factory=dict)

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        yield from repeated("containers", [each.name for each in self.containers], "container")


class PodMetadata(Declared, extra="allow"):
    """Metadata of a pod or a template, whose annotations may say how the pod behaves."""

    labels: Strings = Field(default_factory=dict)
    annotations: Strings = Field(default_factory=dict)

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        for key, value in self.annotations.items():
            if key.startswith(_PREFIX):
                yield from _behaviour(key, value)


class NamedPodMetadata(Metadata, PodMetadata):
    """Metadata of a bare pod."""


class PodTemplate(Declared):
    metadata: PodMetadata = PodMetadata()
    spec: PodSpec


def _behaviour(key: str, value: str) -> Iterator[Contradiction]:
    path, known = ("annotations", key), (STARTUP, STOP, NEVER_READY, RUN, USAGE)
    if key not in known:
        yield Contradiction(
            path=path,
            found=f"the unknown annotation {key}",
            allowed=listed(known),
            cure=rename(key, known, "Remove it"),
        )
    elif key == USAGE:
        if not re.fullmatch("[0-9]{1,4}%", value):
            yield Contradiction(
                path=path, found=shown(value), allowed="a share such as 70%", cure="Write one"
            )
    elif key == NEVER_READY:
        if value not in {"true", "false"}:
            yield Contradiction(
                path=path, found=shown(value), allowed='"true" or "false"', cure='Write "true"'
            )
    else:
        try:
            parse_duration(value)
        except BadInput:
            yield Contradiction(
                path=path, found=shown(value), allowed=EXAMPLES, cure="Write a duration"
            )


class KubernetesObject(Declared, extra="allow"):
    """What every kind has."""

    __pydantic_extra__: dict[Annotated[str, _among("status")], Any]
    api_version: str | None = None
    kind: str = ""
    metadata: Metadata


class Templated(Declared):
    """A spec with the template of its pods."""

    template: PodTemplate

    @property
    def kind(self) -> str:
        """The kind whose spec this is."""
        return type(self).__name__.removesuffix("Spec")

    @property
    def restart_policies(self) -> Sequence[str]:
        """What its pods may say; only a Job's pods end."""
        return ("Always",)

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        pod, allowed = self.template.spec, self.restart_policies
        if pod.restart_policy not in allowed:
            given = "restart_policy" in pod.model_fields_set
            yield Contradiction(
                path=("template", "spec", "restartPolicy"),
                found=shown(pod.restart_policy) if given else "nothing",
                allowed=f"{listed(allowed)} in a {self.kind}",
                cure=f"Write restartPolicy: {allowed[-1]}",
            )


class Selecting(Templated):
    """A spec that says by labels which pods are its own."""

    selector: LabelSelector
    min_ready_seconds: Whole = 0

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        yield from super().contradictions()
        labels = self.template.metadata.labels
        selector = self.selector.model_dump(mode="json", by_alias=True, exclude_none=True)
        if not self.selector.match_labels and not self.selector.match_expressions:
            yield Contradiction(
                path=("selector",),
                found="an empty selector",
                allowed="a selector that names labels of the template",
                cure="Add matchLabels",
            )
        elif not matches(parse_selector(selector), labels):
            yield Contradiction(
                path=("selector",),
                found=f"a selector that does not match the labels of the template, {shown(labels)}",
                allowed=f"a selector that takes the {self.kind}'s own pods",
                cure="Make selector and spec.template.metadata.labels agree",
            )


class Workload(KubernetesObject):
    """An object whose pods are made from a template."""

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        for key in self.metadata.annotations:
            if key.startswith(_PREFIX):
                yield Contradiction(
                    path=("metadata", "annotations", key),
                    found=f"{key} on the object",
                    allowed="it on the pod template",
                    cure="Move it to spec.template.metadata.annotations",
                )


def _if_rolling[R: Declared](settings: type[R]) -> Callable[[dict[str, Any]], R | None]:
    """Return what gives the default settings of a rolling update, where the type is one."""
    return lambda data: settings() if data.get("type") == "RollingUpdate" else None


class DeploymentRolling(Declared):
    max_unavailable: PodsOrShare = "25%"
    max_surge: PodsOrShare = "25%"


class DeploymentStrategy(Declared):
    type: Literal["RollingUpdate", "Recreate"] = "RollingUpdate"
    rolling_update: DeploymentRolling | None = Field(default_factory=_if_rolling(DeploymentRolling))

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        rolling = self.rolling_update
        if self.type == "Recreate" and rolling is not None:
            yield Contradiction(
                path=("rollingUpdate",),
                found="rollingUpdate with the type Recreate",
                allowed="rollingUpdate with the type RollingUpdate only",
                cure="Remove one of the two",
            )
        elif rolling is not None and not any(
            resolve(value, 100, round_up=True)
            for value in (rolling.max_unavailable, rolling.max_surge)
        ):
            yield Contradiction(
                path=("rollingUpdate",),
                found="maxUnavailable and maxSurge both 0",
                allowed="at least one of them above 0, or no rollout could ever begin",
                cure="Raise maxSurge",
            )


class DeploymentSpec(Selecting):
    replicas: Whole = 1
    strategy: DeploymentStrategy = DeploymentStrategy()
    revision_history_limit: Whole = 10
    progress_deadline_seconds: Whole = 600
    paused: bool | None = None


class Deployment(Workload):
    spec: DeploymentSpec


class ReplicaSetSpec(Selecting):
    replicas: Whole = 1


class ReplicaSet(Workload):
    spec: ReplicaSetSpec


class StatefulSetRolling(Declared):
    partition: Whole = 0
    max_unavailable: PodsOrShare | None = None


class StatefulSetStrategy(Declared):
    type: Rolling = "RollingUpdate"
    rolling_update: StatefulSetRolling | None = Field(
        default_factory=_if_rolling(StatefulSetRolling)
    )


class ClaimRequests(Declared, extra="allow"):
    __pydantic_extra__: dict[str, Amount]
    storage: Amount


class ClaimResources(Declared):
    requests: ClaimRequests
    limits: Amounts | None = None


class ClaimSpec(Declared, extra="allow"):
    __pydantic_extra__: dict[Annotated[str, _among("dataSource dataSourceRef")], Any]
    access_modes: Annotated[
        tuple[Literal["ReadWriteOnce", "ReadWriteOncePod", "ReadOnlyMany", "ReadWriteMany"], ...],
        Field(min_length=1),
    ]
    resources: ClaimResources
    storage_class_name: str | None = None
    volume_name: str | None = None
    volume_mode: Literal["Filesystem", "Block"] = "Filesystem"
    selector: LabelSelector | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaim(KubernetesObject):
    spec: ClaimSpec


class ClaimTemplate(PersistentVolumeClaim):
    api_version: str = "v1"
    kind: str = "PersistentVolumeClaim"


class ClaimRetention(Declared):
    when_deleted: Literal["Retain", "Delete"] = "Retain"
    when_scaled: Literal["Retain", "Delete"] = "Retain"


class Ordinals(Declared):
    start: Whole | None = None


class StatefulSetSpec(Selecting):
    replicas: Whole = 1
    service_name: str | None = None
    pod_management_policy: Literal["OrderedReady", "Parallel"] = "OrderedReady"
    update_strategy: StatefulSetStrategy = StatefulSetStrategy()
    volume_claim_templates: tuple[ClaimTemplate, ...] | None = None
    revision_history_limit: Whole = 10
    persistent_volume_claim_retention_policy: ClaimRetention = ClaimRetention()
    ordinals: Ordinals | None = None

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        yield from super().contradictions()
        names = [claim.metadata.name for claim in self.volume_claim_templates or ()]
        yield from repeated("volumeClaimTemplates", names, "claim", "metadata")


class StatefulSet(Workload):
    spec: StatefulSetSpec


class DaemonSetRolling(Declared):
    max_unavailable: PodsOrShare = 1
    max_surge: PodsOrShare = 0


class DaemonSetStrategy(Declared):
    type: Rolling = "RollingUpdate"
    rolling_update: DaemonSetRolling | None = Field(default_factory=_if_rolling(DaemonSetRolling))


class DaemonSetSpec(Selecting):
    update_strategy: DaemonSetStrategy = DaemonSetStrategy()
    revision_history_limit: Whole = 10


class DaemonSet(Workload):
    spec: DaemonSetSpec


class JobSpec(Templated, extra="allow"):
    __pydantic_extra__: dict[
        Annotated[
            str,
            _among(
                "backoffLimitPerIndex managedBy maxFailedIndexes podFailurePolicy "
                "podReplacementPolicy successPolicy"
            ),
        ],
        Any,
    ]
    parallelism: Whole = 1
    completions: Whole = Field(default_factory=lambda data: data.get("parallelism", 1))
    """Without it a Job is done when one pod says so. Here none ever does: all go on side by side."""
    backoff_limit: Whole = 6
    active_deadline_seconds: Whole | None = None
    ttl_seconds_after_finished: Whole | None = None
    completion_mode: Literal["NonIndexed", "Indexed"] = "NonIndexed"
    suspend: bool = False

    @property
    @override
    def restart_policies(self) -> Sequence[str]:
        return "OnFailure", "Never"


class Job(Workload):
    spec: JobSpec


class Pod(KubernetesObject):
    metadata: NamedPodMetadata
    spec: PodSpec


class ScaleTarget(Declared):
    api_version: str | None = None
    kind: Literal["Deployment", "StatefulSet"]
    name: Name


class HorizontalPodAutoscalerSpec(Declared, extra="allow"):
    __pydantic_extra__: dict[Annotated[str, _among("metrics behavior")], Any]
    scale_target_ref: ScaleTarget
    min_replicas: Positive = 1
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


class PodDisruptionBudgetSpec(Declared):
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


class ServiceSpec(Declared, extra="allow"):
    selector: Strings | None = None
    type: Literal["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"] = "ClusterIP"


class Service(KubernetesObject):
    spec: ServiceSpec


class PersistentVolumeSpec(Declared, extra="allow"):
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
    ConfigMap: "v1",
    Namespace: "v1",
    MutatingAdmissionPolicy: "admissionregistration.k8s.io/v1",
    MutatingAdmissionPolicyBinding: "admissionregistration.k8s.io/v1",
    PriorityClass: "scheduling.k8s.io/v1",
}
MODELS: Final = {model.__name__: model for model in _VERSIONS}
KINDS: Final = {model.__name__: version for model, version in _VERSIONS.items()}
"""Kinds that manifests may hold, and the API version of each."""

COUNTED = frozenset({"Deployment", "ReplicaSet", "StatefulSet"})
"""Kinds whose Ready replicas are measured."""
LISTED = frozenset({"Job", "Pod"})
"""Kinds that are listed without a ready floor: only their `pods_*` figures count."""
