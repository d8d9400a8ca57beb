"""The fields of Kubernetes objects that are read, in the words of the API reference.

The decoder steps over every other field without making anything of it. What an object may leave out
has the API server's default here. Tenants write these objects: lists are held to more than anybody
means, and numbers to what can be counted with.

https://kubernetes.io/docs/reference/kubernetes-api/
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct, field

from plimsoll.domain.fields import LIST_LIMIT_ITEMS, WHOLE_LIMIT
from plimsoll.domain.kubernetes import Requirement, Taint, Toleration

DEFAULT_SCHEDULER: Final = "default-scheduler"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_MANY: Final = Meta(max_length=LIST_LIMIT_ITEMS)
_TERMS: Final = Meta(max_length=20)
_HUNDRED: Final = Meta(max_length=100)

type Pairs = dict[str, str]
type Texts = Annotated[tuple[str, ...], _MANY]
type Whole = Annotated[int, Meta(ge=-WHOLE_LIMIT, le=WHOLE_LIMIT)]
type CountOrShare = (
    Annotated[int, Meta(ge=0, le=WHOLE_LIMIT)] | Annotated[str, Meta(pattern=r"^[0-9]{1,9}%\Z")]
)
type Amounts = Annotated[dict[str, str | int | float], _HUNDRED]
"""A resource list."""


class _Read(Struct, rename="camel", omit_defaults=True, gc=False):
    """Part of an object."""


class Reference(_Read):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Metadata(_Read):
    name: str = ""
    namespace: str = "default"
    uid: str = ""
    resource_version: str = ""
    generation: Whole = 0
    generate_name: str = ""
    labels: Pairs = field(default_factory=dict)
    annotations: Pairs = field(default_factory=dict)
    owner_references: Annotated[tuple[Reference, ...], _MANY] = ()
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    deletion_grace_period_seconds: Whole | None = None

    @property
    def controller(self) -> Reference | None:
        """The one owner that makes the object anew."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class Named(_Read):
    """An object of the API."""

    metadata: Metadata


class Described[S](Named):
    """An object of which the spec is read, by the type of its kind."""

    spec: S


class Object[S, T](Described[S]):
    """An object of which spec and status are read, by the types of its kind."""

    status: T


class Nothing(_Read):
    """A part of which nothing is read."""


class Condition(_Read):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


type Conditions = Annotated[tuple[Condition, ...], _MANY]


class LabelSelector(_Read):
    match_labels: Pairs = field(default_factory=dict)
    match_expressions: Annotated[tuple[Requirement, ...], _HUNDRED] = ()


# Nodes


class NodeSpec(_Read):
    provider_id: str = field(default="", name="providerID")
    taints: Annotated[tuple[Taint, ...], _MANY] = ()
    unschedulable: bool = False


class NodeStatus(_Read):
    allocatable: Amounts = field(default_factory=dict)
    capacity: Amounts = field(default_factory=dict)
    conditions: Conditions = ()


Node = Object[NodeSpec, NodeStatus]


# Pods


class NodeSelectorTerm(_Read):
    match_expressions: Annotated[tuple[Requirement, ...], _HUNDRED] = ()
    match_fields: Annotated[tuple[Requirement, ...], _HUNDRED] = ()


class NodeSelector(_Read):
    node_selector_terms: Annotated[tuple[NodeSelectorTerm, ...], _MANY] = ()


class NodeAffinity(_Read):
    required: NodeSelector | None = field(default=None, name=_REQUIRED)


class PodAffinityTerm(_Read):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: Texts = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: Texts = ()
    mismatch_label_keys: Texts = ()


class PodAffinity(_Read):
    required: Annotated[tuple[PodAffinityTerm, ...], _TERMS] = field(default=(), name=_REQUIRED)


class Affinity(_Read):
    node_affinity: NodeAffinity = field(default_factory=NodeAffinity)
    pod_affinity: PodAffinity = field(default_factory=PodAffinity)
    pod_anti_affinity: PodAffinity = field(default_factory=PodAffinity)


class TopologySpreadConstraint(_Read):
    max_skew: Whole = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: Whole | None = None
    match_label_keys: Texts = ()
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"


class ResourceRequirements(_Read):
    limits: Amounts = field(default_factory=dict)
    requests: Amounts = field(default_factory=dict)


class LimitItem(_Read):
    type: str = ""
    min: Amounts = field(default_factory=dict)
    max: Amounts = field(default_factory=dict)
    default: Amounts = field(default_factory=dict)
    default_request: Amounts = field(default_factory=dict)
    max_limit_request_ratio: Amounts = field(default_factory=dict)


class LimitRangeSpec(_Read):
    limits: Annotated[tuple[LimitItem, ...], _MANY] = ()


LimitRange = Described[LimitRangeSpec]


class ContainerPort(_Read):
    container_port: Whole = 0
    host_port: Whole = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = "TCP"


class SleepAction(_Read):
    seconds: Whole = 0


class ExecAction(_Read):
    command: Texts = ()


class LifecycleHandler(_Read):
    sleep: SleepAction | None = None
    exec: ExecAction | None = None


class Lifecycle(_Read):
    pre_stop: LifecycleHandler = field(default_factory=LifecycleHandler)


class Container(_Read):
    name: str = ""
    lifecycle: Lifecycle | None = None
    ports: Annotated[tuple[ContainerPort, ...], _MANY] = ()
    resources: ResourceRequirements = field(default_factory=ResourceRequirements)
    restart_policy: str = ""


class Placing(_Read):
    """The part of a pod's spec that decides where it may run, but for its volumes."""

    affinity: Affinity | None = None
    containers: Annotated[tuple[Container, ...], _MANY] = ()
    init_containers: Annotated[tuple[Container, ...], _MANY] = ()
    host_network: bool = False
    node_selector: Pairs = field(default_factory=dict)
    overhead: Amounts = field(default_factory=dict)
    resources: ResourceRequirements = field(default_factory=ResourceRequirements)
    resource_claims: Annotated[tuple[Nothing, ...], _MANY] = ()
    tolerations: Annotated[tuple[Toleration, ...], _HUNDRED] = ()
    topology_spread_constraints: Annotated[tuple[TopologySpreadConstraint, ...], _TERMS] = ()


class ClaimSource(_Read):
    claim_name: str = ""


class PodVolume(_Read):
    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: Nothing | None = None


class SchedulingGate(_Read):
    name: str = ""


class SchedulingGroup(_Read):
    pod_group_name: str = ""


class BarePodSpec(_Read):
    """What is read of a pod of which nobody can tell where it may run."""

    node_name: str = ""
    scheduler_name: str = DEFAULT_SCHEDULER
    scheduling_gates: Annotated[tuple[SchedulingGate, ...], _MANY] = ()
    scheduling_group: SchedulingGroup | None = None
    active_deadline_seconds: Whole | None = None
    priority_class_name: str = ""
    termination_grace_period_seconds: Whole = 30
    priority: Whole = 0
    preemption_policy: str = ""
    restart_policy: str = "Always"


class PodSpec(Placing):
    node_name: str = ""
    scheduler_name: str = DEFAULT_SCHEDULER
    scheduling_gates: Annotated[tuple[SchedulingGate, ...], _MANY] = ()
    scheduling_group: SchedulingGroup | None = None
    active_deadline_seconds: Whole | None = None
    priority_class_name: str = ""
    termination_grace_period_seconds: Whole = 30
    priority: Whole = 0
    preemption_policy: str = ""
    restart_policy: str = "Always"
    runtime_class_name: str = ""
    volumes: Annotated[tuple[PodVolume, ...], _MANY] = ()


class ContainerStatus(_Read):
    name: str = ""
    restart_count: Whole = 0
    allocated_resources: Amounts = field(default_factory=dict)
    resources: ResourceRequirements | None = None


class PodStatus(_Read):
    phase: str = "Pending"
    start_time: str = ""
    conditions: Conditions = ()
    container_statuses: Annotated[tuple[ContainerStatus, ...], _MANY] = ()
    init_container_statuses: Annotated[tuple[ContainerStatus, ...], _MANY] = ()


BarePod = Object[BarePodSpec, PodStatus]


Pod = Object[PodSpec, PodStatus]


class PodTemplate(_Read):
    metadata: Metadata = field(default_factory=Metadata)
    spec: PodSpec = field(default_factory=PodSpec)


# Groups of pods


class GangPolicy(_Read):
    min_count: Annotated[int, Meta(ge=1, le=WHOLE_LIMIT)] = 1


class SchedulingPolicy(_Read):
    gang: GangPolicy | None = None


class DisruptionMode(_Read):
    all: Nothing | None = None


class PodGroupSpec(_Read):
    scheduling_policy: SchedulingPolicy = field(default_factory=SchedulingPolicy)
    disruption_mode: DisruptionMode | None = None
    priority: Whole | None = None


PodGroup = Described[PodGroupSpec]


# Workloads


class RollingUpdate(_Read):
    max_unavailable: CountOrShare | None = None
    max_surge: CountOrShare | None = None
    partition: Whole = 0


class Istio(_Read):
    destination_rule: Nothing | None = None


class AppMesh(_Read):
    virtual_node_group: Nothing | None = None


class TrafficRouting(_Read):
    istio: Istio = field(default_factory=Istio)
    app_mesh: AppMesh = field(default_factory=AppMesh)


class Canary(RollingUpdate):
    traffic_routing: TrafficRouting = field(default_factory=TrafficRouting)


class Strategy(_Read):
    """Of a Deployment or StatefulSet: `type` and `rollingUpdate`; of a Rollout the others."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdate = field(default_factory=RollingUpdate)
    canary: Canary = field(default_factory=Canary)
    blue_green: RollingUpdate | None = None


class Ordinals(_Read):
    start: Whole = 0


class WorkloadSpec(_Read):
    """Of a Deployment, Rollout, StatefulSet or ReplicaSet; none has all of it."""

    replicas: Whole = 1
    selector: LabelSelector | None = None
    template: PodTemplate = field(default_factory=PodTemplate)
    strategy: Strategy = field(default_factory=Strategy)
    update_strategy: Strategy = field(default_factory=Strategy)
    paused: bool = False
    min_ready_seconds: Whole = 0
    volume_claim_templates: Annotated[tuple[Nothing, ...], _MANY] = ()
    ordinals: Ordinals = field(default_factory=Ordinals)
    workload_ref: Reference | None = None


class WorkloadStatus(_Read):
    observed_generation: Whole = 0
    replicas: Whole = 0
    updated_replicas: Whole = 0
    current_revision: str = ""
    update_revision: str = ""
    conditions: Conditions = ()


Workload = Object[WorkloadSpec, WorkloadStatus]


class RolloutStatus(_Read):
    stable: str = field(default="", name="stableRS")
    current_pod_hash: str = ""


Rollout = Object[WorkloadSpec, RolloutStatus]


class ScalerSpec(_Read):
    scale_target_ref: Reference = field(default_factory=Reference)
    min_replicas: Whole = 1


class ScalerStatus(_Read):
    last_scale_time: str = ""


Scaler = Object[ScalerSpec, ScalerStatus]


# What limits and binds pods


class BudgetSpec(_Read):
    selector: LabelSelector | None = None
    min_available: CountOrShare | None = None
    max_unavailable: CountOrShare | None = None


class BudgetStatus(_Read):
    disruptions_allowed: Whole = 0
    desired_healthy: Whole = 0
    current_healthy: Whole = 0


Budget = Object[BudgetSpec, BudgetStatus]


class ServiceSpec(_Read):
    selector: Pairs = field(default_factory=dict)
    type: str = "ClusterIP"
    external_traffic_policy: str = ""


Service = Described[ServiceSpec]


class NetworkPolicySpec(_Read):
    pod_selector: LabelSelector | None = None


NetworkPolicy = Described[NetworkPolicySpec]


class ScopeRequirement(_Read):
    scope_name: str = ""
    operator: str = "Exists"
    values: Texts = ()


class ScopeSelector(_Read):
    match_expressions: Annotated[tuple[ScopeRequirement, ...], _HUNDRED] = ()


class QuotaSpec(_Read):
    scopes: Texts = ()
    scope_selector: ScopeSelector = field(default_factory=ScopeSelector)


class QuotaStatus(_Read):
    hard: Pairs = field(default_factory=dict)
    used: Pairs = field(default_factory=dict)


Quota = Object[QuotaSpec, QuotaStatus]


class ConfigMap(Named):
    data: Pairs = field(default_factory=dict)


class ClaimSpec(_Read):
    volume_name: str = ""
    storage_class_name: str = ""
    access_modes: Texts = ()


class ClaimStatus(_Read):
    phase: str = ""


class Claim(Described[ClaimSpec]):
    status: ClaimStatus = field(default_factory=ClaimStatus)


class VolumeNodeAffinity(_Read):
    required: NodeSelector = field(default_factory=NodeSelector)


class Driver(_Read):
    driver: str = ""


class VolumeSpec(_Read):
    node_affinity: VolumeNodeAffinity = field(default_factory=VolumeNodeAffinity)
    csi: Driver = field(default_factory=Driver)


Volume = Described[VolumeSpec]


class TopologyRequirement(_Read):
    key: str = ""
    values: Texts = ()


class TopologyTerm(_Read):
    match_label_expressions: Annotated[tuple[TopologyRequirement, ...], _HUNDRED] = ()


class StorageClass(Named):
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: Annotated[tuple[TopologyTerm, ...], _MANY] = ()


class VolumeLimit(_Read):
    count: Whole | None = None


class NodeDriver(_Read):
    name: str = ""
    allocatable: VolumeLimit = field(default_factory=VolumeLimit)


class CsiNodeSpec(_Read):
    drivers: Annotated[tuple[NodeDriver, ...], _MANY] = ()


CsiNode = Described[CsiNodeSpec]


class AttachmentSource(_Read):
    persistent_volume_name: str = ""


class AttachmentSpec(_Read):
    node_name: str = ""
    source: AttachmentSource = field(default_factory=AttachmentSource)


class AttachmentStatus(_Read):
    attached: bool = False


Attachment = Object[AttachmentSpec, AttachmentStatus]
