"""The fields that the agent reads beyond those of `plimsoll.adapters.kubernetes.schema`.

Together the two are the allow-list: a field that no type names is stepped over by the decoder, and
never becomes an object in memory. There is no environment, command, secret or ConfigMap in either.

https://kubernetes.io/docs/reference/kubernetes-api/
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from plimsoll.adapters.kubernetes import schema as core
from plimsoll.adapters.kubernetes.schema import (
    Amounts,
    Described,
    Metadata,
    Named,
    Object,
    PodTemplate,
    Reference,
    ResourceRequirements,
    VolumeNodeAffinity,
    Whole,
)

_MANY = Meta(max_length=1000)


class Part(Struct, rename="camel", omit_defaults=True, gc=False):
    """Part of an object."""


class ReadyCounts(Part):
    """What the controllers of workloads count."""

    ready_replicas: Whole = 0
    number_ready: Whole = 0
    """Of a DaemonSet."""
    desired_number_scheduled: Whole = 0
    """Of a DaemonSet."""
    active: Whole = 0
    """Of a Job: pods that run."""


class Counted(Part):
    """A workload, as far as its controller counts."""

    metadata: Metadata
    status: ReadyCounts = field(default_factory=ReadyCounts)


class Container(Part):
    """A container of a pod template."""

    name: str = ""
    restart_policy: str = ""
    resources: ResourceRequirements = field(default_factory=ResourceRequirements)


class Containers(Part):
    """Of a pod template: what its containers ask for, and what is asked for all of them together."""

    containers: Annotated[tuple[Container, ...], _MANY] = ()
    init_containers: Annotated[tuple[Container, ...], _MANY] = ()
    resources: ResourceRequirements = field(default_factory=ResourceRequirements)


class Template(Part):
    """A pod template."""

    spec: Containers = field(default_factory=Containers)


class Templated(Part):
    """What has a pod template."""

    template: Template = field(default_factory=Template)


class JobSpec(Part):
    """What a Job is made of."""

    parallelism: Whole = 1
    template: PodTemplate = field(default_factory=PodTemplate)


class Terminated(Part):
    """How a container ended."""

    reason: str = ""
    finished_at: str = ""


class ContainerState(Part):
    """In which state a container is, or was before."""

    terminated: Terminated | None = None


class ContainerStatus(core.ContainerStatus):
    """What the kubelet says of a container."""

    name: str = ""
    state: ContainerState = field(default_factory=ContainerState)
    last_state: ContainerState = field(default_factory=ContainerState)


class PodStatus(core.PodStatus):
    """The status of a pod, with its containers."""

    container_statuses: Annotated[tuple[ContainerStatus, ...], _MANY] = ()
    init_container_statuses: Annotated[tuple[ContainerStatus, ...], _MANY] = ()


Pod = Object[core.PodSpec, PodStatus]


Job = Object[JobSpec, ReadyCounts]


class JobTemplate(Part):
    """What a CronJob makes."""

    spec: JobSpec = field(default_factory=JobSpec)


class CronJobSpec(Part):
    """What a CronJob is made of."""

    job_template: JobTemplate = field(default_factory=JobTemplate)


CronJob = Described[CronJobSpec]


class ScalerSpec(Part):
    """Of a HorizontalPodAutoscaler."""

    scale_target_ref: Reference = field(default_factory=Reference)
    min_replicas: Whole = 1
    max_replicas: Whole = 1


Scaler = Described[ScalerSpec]


class UpdatePolicy(Part):
    """Whether a VerticalPodAutoscaler writes what it recommends."""

    update_mode: str = "Auto"


class VerticalScalerSpec(Part):
    """Of a VerticalPodAutoscaler."""

    target_ref: Reference = field(default_factory=Reference)
    update_policy: UpdatePolicy = field(default_factory=UpdatePolicy)


VerticalScaler = Described[VerticalScalerSpec]


class ClaimReference(Part):
    """The claim that has a volume."""

    namespace: str = ""
    name: str = ""


class CsiSource(Part):
    """The volume of a CSI driver."""

    volume_handle: str = ""


class EbsSource(Part):
    """A volume from before the CSI driver."""

    volume_id: str = field(default="", name="volumeID")


class VolumeSpec(Part):
    """Of a PersistentVolume."""

    capacity: Amounts = field(default_factory=dict)
    claim_ref: ClaimReference | None = None
    storage_class_name: str = ""
    persistent_volume_reclaim_policy: str = "Retain"
    node_affinity: VolumeNodeAffinity = field(default_factory=VolumeNodeAffinity)
    csi: CsiSource = field(default_factory=CsiSource)
    aws_elastic_block_store: EbsSource = field(default_factory=EbsSource)


class Phase(Part):
    """In which phase something is, and since when."""

    phase: str = "Pending"
    last_phase_transition_time: str = ""


Volume = Object[VolumeSpec, Phase]


class StorageClass(Named):
    """What its provisioner is told."""

    parameters: dict[str, str] = field(default_factory=dict)


class Address(Part):
    """Where a load balancer listens."""

    hostname: str = ""
    ip: str = ""


class Listening(Part):
    """The addresses of a load balancer."""

    ingress: Annotated[tuple[Address, ...], _MANY] = ()


class LoadBalanced(Part):
    """The status of what has a load balancer."""

    load_balancer: Listening = field(default_factory=Listening)


class ServiceSpec(Part):
    """Of a Service."""

    type: str = "ClusterIP"


Service = Object[ServiceSpec, LoadBalanced]


class BackendService(Part):
    """The Service that an Ingress leads to."""

    name: str = ""


class Backend(Part):
    """What an Ingress leads to."""

    service: BackendService = field(default_factory=BackendService)


class Path(Part):
    """One path of a rule."""

    backend: Backend = field(default_factory=Backend)


class Http(Part):
    """The paths of a rule."""

    paths: Annotated[tuple[Path, ...], _MANY] = ()


class Rule(Part):
    """One rule of an Ingress."""

    http: Http = field(default_factory=Http)


class IngressSpec(Part):
    """Of an Ingress."""

    default_backend: Backend | None = None
    rules: Annotated[tuple[Rule, ...], _MANY] = ()


Ingress = Object[IngressSpec, LoadBalanced]


class Ready(Part):
    """Whether an endpoint takes requests; one that does not say does."""

    ready: bool = True


class Target(Part):
    """What an endpoint leads to."""

    kind: str = ""
    uid: str = ""


class Endpoint(Part):
    """One endpoint of a Service."""

    conditions: Ready = field(default_factory=Ready)
    addresses: Annotated[tuple[str, ...], _MANY] = ()
    target_ref: Target | None = None


class EndpointPort(Part):
    """A port of a Service, as its pods have it."""

    port: int | None = None
    protocol: str = "TCP"


class Slice(Named):
    """An EndpointSlice."""

    endpoints: Annotated[tuple[Endpoint, ...], _MANY] = ()
    ports: Annotated[tuple[EndpointPort, ...], _MANY] | None = None


class ContainerPort(Part):
    """A port that a container says it listens on."""

    container_port: int = 0


class ListeningContainer(Part):
    """A container, as far as it listens."""

    ports: Annotated[tuple[ContainerPort, ...], _MANY] = ()


class ListeningSpec(Part):
    """Of a pod, where it listens."""

    node_name: str = ""
    containers: Annotated[tuple[ListeningContainer, ...], _MANY] = ()


class PodIp(Part):
    """An address of a pod."""

    ip: str = ""


class PodIps(Part):
    """The addresses of a pod, as the kubelet says."""

    pod_ips: Annotated[tuple[PodIp, ...], _MANY] = field(default=(), name="podIPs")


ListeningPod = Object[ListeningSpec, PodIps]


class ContainerUsage(Part):
    """What a container used."""

    name: str = ""
    usage: Amounts = field(default_factory=dict)


class NodeMetrics(Named):
    """What a node used."""

    usage: Amounts = field(default_factory=dict)


class PodMetrics(Named):
    """What the containers of a pod used."""

    containers: Annotated[tuple[ContainerUsage, ...], _MANY] = ()
