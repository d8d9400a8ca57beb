"""Snapshots: what an agent tells of its cluster.

An agent numbers its snapshots within its epoch. A full one stands for itself. A delta holds what
differs from one full snapshot, its `base`, and never from another delta: so the newest delta and its
base are the whole truth, and deltas may be lost, doubled and overtaken without harm.

Usage stands apart from nodes and pods, because it differs each time, and they do not. A delta holds
all of it.

Every field is one that the agent is allowed to read: no environment, no secret, no command line, and
of labels and annotations only those named here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import chain
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from plimsoll_service.wire.documents import (
    Count,
    Malformed,
    Text,
    Time,
    Unwritable,
    compress,
    decompress,
)
from plimsoll_service.wire.documents import encode as encode_document
from plimsoll_service.wire.gpu import MOST_SAMPLES, GpuSample
from plimsoll_service.wire.names import (
    Address,
    ContainerName,
    KindName,
    LabelKey,
    LabelValue,
    MaybeNamespace,
    MaybeObject,
    MaybeUid,
    Namespace,
    ObjectName,
    ProviderId,
    Uid,
    Word,
)
from plimsoll_service.wire.sifting import decode_sifted

VERSION: Final = 1
NODE_LABELS: Final = (
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "kubernetes.io/hostname",
    "node.kubernetes.io/capacity",
    "karpenter.sh/capacity-type",
    "eks.amazonaws.com/capacityType",
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "plimsoll.dev/node-group",
    "nvidia.com/gpu.product",
    "nvidia.com/gpu.count",
    "nvidia.com/gpu.replicas",
    "nvidia.com/gpu.sharing-strategy",
    "nvidia.com/mig.config",
    "nvidia.com/mig.config.state",
)
"""The labels of a Node that an agent tells."""
ANNOTATIONS: Final = (
    "plimsoll.dev/min-on-demand",
    "plimsoll.dev/keep-ready",
    "plimsoll.dev/ignore",
    "plimsoll.dev/do-not-disrupt",
    "karpenter.sh/do-not-disrupt",
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
)
"""The annotations of a workload, a pod or a Node that an agent tells."""

type Labels = Annotated[dict[LabelKey, LabelValue], Meta(max_length=32)]
type Annotations = Annotated[
    dict[LabelKey, Annotated[str, Meta(max_length=256)]], Meta(max_length=32)
]
"""Their values are text, which whoever may annotate an object chooses."""
type CountOrShare = (
    Annotated[int, Meta(ge=0, le=2**31 - 1)] | Annotated[str, Meta(pattern=r"^[0-9]{1,9}%\Z")]
)
type Uids = Annotated[tuple[Uid, ...], Meta(max_length=64)]
MOST_CONTAINERS: Final = 20
"""Of a pod or a template that is told by its containers: a patch for more would be too long to keep."""
MOST_GPU_RESOURCES: Final = 8
"""Of a pod."""


class Part(Struct, frozen=True, omit_defaults=True, gc=False):
    """Part of a snapshot. A field at its default is left out of the JSON."""


class Amounts(Part, frozen=True, kw_only=True):
    """Requests, limits, or what a node can give."""

    cpu_m: Count = 0
    """Millicores."""
    memory: Count = 0
    """Bytes."""
    pods: Count = 0


class ContainerUsage(Part, array_like=True, frozen=True, kw_only=True):
    """The usage of a container of a pod."""

    name: ContainerName
    cpu_m: Count
    memory: Count


class Usage(Part, array_like=True, frozen=True, kw_only=True):
    """The usage of a node or a pod when the snapshot was taken, by the uid of that object."""

    uid: Uid
    cpu_m: Count
    memory: Count
    containers: Annotated[tuple[ContainerUsage, ...], Meta(max_length=MOST_CONTAINERS)] = ()
    """Of a pod. Empty: an agent of an older version, or a pod with more containers."""


class Taint(Part, frozen=True, kw_only=True):
    """A taint of a Node."""

    key: LabelKey
    value: LabelValue = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


class Node(Part, frozen=True, kw_only=True):
    """A Node."""

    uid: Uid
    name: ObjectName
    provider_id: ProviderId = ""
    labels: Labels = {}
    """Those of `NODE_LABELS`."""
    annotations: Annotations = {}
    """Those of `ANNOTATIONS`."""
    taints: Annotated[tuple[Taint, ...], Meta(max_length=64)] = ()
    unschedulable: bool = False
    ready: bool = True
    allocatable: Amounts
    created_at: Time


class Owner(Part, frozen=True, kw_only=True):
    """The topmost controller of a pod: the Deployment, not its ReplicaSet."""

    kind: KindName
    name: ObjectName
    uid: Uid


class Restarted(Part, frozen=True, kw_only=True):
    """A container of a pod that was restarted or OOM-killed, and how it ended last."""

    name: ContainerName
    restarts: Count = 0
    reason: Word = ""
    """Such as OOMKilled or Error; empty: Kubernetes does not say any more."""
    at: Time | None = None
    """When it ended."""


class Pod(Part, frozen=True, kw_only=True):
    """A pod that is neither Succeeded nor Failed."""

    uid: Uid
    namespace: Namespace
    name: ObjectName
    owner: Owner | None = None
    node: MaybeObject = ""
    """The name of its node; empty while it waits for one."""
    elsewhere: bool = False
    """Another scheduler is to place it, or it is behind a scheduling gate: it waits for no node here."""
    phase: Literal["Pending", "Running", "Unknown"] = "Running"
    ready: bool = True
    deleting: bool = False
    requests: Amounts = Amounts()
    limits: Amounts = Amounts()
    """0 is no limit."""
    priority: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] = 0
    restart_policy: Literal["Always", "OnFailure", "Never"] = "Always"
    restarted: Annotated[tuple[Restarted, ...], Meta(max_length=MOST_CONTAINERS)] = ()
    """Its containers that ended, those that were OOM-killed first."""
    volumes: Annotated[tuple[ObjectName, ...], Meta(max_length=64)] = ()
    """Names of its PersistentVolumeClaims."""
    annotations: Annotations = {}
    """Those of `ANNOTATIONS`."""
    gpus: Annotated[dict[LabelKey, Count], Meta(max_length=MOST_GPU_RESOURCES)] = {}
    """The GPUs, slices or replicas that it requests, by the name of the resource."""
    template: LabelValue = ""
    """Of a pod that requests GPUs: the hash of its template, as its ReplicaSet or ControllerRevision has it."""
    created_at: Time


class Requirement(Part, frozen=True, kw_only=True):
    """One line of required node affinity."""

    key: LabelKey
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: Annotated[tuple[Annotated[str, Meta(max_length=256)], ...], Meta(max_length=200)] = ()


class Toleration(Part, frozen=True, kw_only=True):
    """A toleration of a pod template."""

    key: Annotated[str, Meta(max_length=317)] = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: Annotated[str, Meta(max_length=256)] = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""


class Spread(Part, frozen=True, kw_only=True):
    """A topology spread constraint with DoNotSchedule, over the workload's own pods."""

    topology_key: LabelKey
    max_skew: Annotated[int, Meta(ge=1, le=2**31 - 1)] = 1


class Placing(Part, frozen=True, kw_only=True):
    """The rules of a pod template for the place of its pods."""

    node_selector: Labels = {}
    node_terms: Annotated[
        tuple[Annotated[tuple[Requirement, ...], Meta(max_length=100)], ...], Meta(max_length=64)
    ] = ()
    """Required node affinity: one of the terms holds. None at all: there is no such affinity."""
    tolerations: Annotated[tuple[Toleration, ...], Meta(max_length=100)] = ()
    apart: Annotated[tuple[LabelKey, ...], Meta(max_length=64)] = ()
    """Topology keys by which its pods refuse one another (required anti-affinity with themselves)."""
    spread: Annotated[tuple[Spread, ...], Meta(max_length=20)] = ()
    unstated: bool = False
    """There is more that a snapshot does not tell: affinity to other workloads, labels beyond `NODE_LABELS`,
    ports of the host, extended resources. Such pods are left where they stand."""


class Container(Part, frozen=True, kw_only=True):
    """A container of a pod template, with the defaults of the LimitRanges of its namespace."""

    name: ContainerName
    sidecar: bool = False
    """An init container with restartPolicy Always."""
    requests: Amounts = Amounts()
    limits: Amounts = Amounts()


class Bounds(Part, frozen=True, kw_only=True):
    """The bounds that LimitRanges set. 0: they set none."""

    least: Amounts = Amounts()
    most: Amounts = Amounts()
    ratio: Amounts = Amounts()
    """The most that a limit may be of its request, in thousandths."""


class LimitRanges(Part, frozen=True, kw_only=True):
    """The LimitRanges of a namespace, as one."""

    container: Bounds = Bounds()
    """Of each container."""
    pod: Bounds = Bounds()
    """Of the sum of a pod."""


class Workload(Part, frozen=True, kw_only=True):
    """A Deployment, StatefulSet, DaemonSet, ReplicaSet, Rollout, Job or CronJob that owns itself."""

    uid: Uid
    kind: KindName
    namespace: Namespace
    name: ObjectName
    replicas: Count = 0
    ready: Count = 0
    requests: Amounts = Amounts()
    """Of one pod."""
    limits: Amounts = Amounts()
    template: Annotated[tuple[Container, ...], Meta(max_length=MOST_CONTAINERS)] = ()
    """The containers that run as long as the pod does. Empty: an agent of an older version, a pod whose
    requests are those of the pod as a whole, or more containers."""
    limit_ranges: LimitRanges | None = None
    """None: nobody knows them."""
    vertical_scaler: Annotated[str, Meta(max_length=256)] = ""
    """The name of the VerticalPodAutoscaler that writes the requests of its pods."""
    strategy: Literal["RollingUpdate", "Recreate", "OnDelete", "BlueGreen"] = "RollingUpdate"
    max_unavailable: CountOrShare = "25%"
    max_surge: CountOrShare = "25%"
    placing: Placing = Placing()
    claim_templates: bool = False
    """A StatefulSet whose pods have volumes of their own."""
    annotations: Annotations = {}
    """Those of `ANNOTATIONS`; a floor or a promise that its namespace states stands here too."""
    created_at: Time


class Volume(Part, frozen=True, kw_only=True):
    """A PersistentVolume, and the claim that has it."""

    uid: Uid
    name: ObjectName
    phase: Literal["Pending", "Available", "Bound", "Released", "Failed"]
    namespace: MaybeNamespace = ""
    claim: MaybeObject = ""
    capacity: Count
    """Bytes."""
    storage_class: MaybeObject = ""
    type: Word = ""
    """What the storage class makes of EBS, such as gp3; empty where nothing says."""
    zone: LabelValue = ""
    reclaim: Literal["Delete", "Retain", "Recycle"] = "Delete"
    ebs: Annotated[str, Meta(pattern=r"^(vol-[0-9a-f]{1,40})?\Z")] = ""
    """The id of its EBS volume; empty: it is none, or an agent of an older version."""
    since: Time | None = None
    """Since when it is in its phase; None: the API server, or an agent of an older version, does not say."""
    created_at: Time


class Budget(Part, frozen=True, kw_only=True):
    """A PodDisruptionBudget."""

    uid: Uid
    namespace: Namespace
    name: ObjectName
    min_available: CountOrShare | None = None
    max_unavailable: CountOrShare | None = None
    disruptions_allowed: Count = 0
    workloads: Uids = ()
    """Uids of the workloads whose pods it covers."""


class Autoscaler(Part, frozen=True, kw_only=True):
    """A HorizontalPodAutoscaler."""

    uid: Uid
    namespace: Namespace
    name: ObjectName
    workload: MaybeUid = ""
    """The uid of what it scales."""
    min_replicas: Count = 1
    max_replicas: Count


class LoadBalancer(Part, frozen=True, kw_only=True):
    """A Service of type LoadBalancer, or an Ingress that has one."""

    uid: Uid
    kind: Literal["Service", "Ingress"]
    namespace: Namespace
    name: ObjectName
    provisioned: bool = True
    """Whether its status names an address."""
    address: Address = ""
    """That address: several Ingresses may share one load balancer. Empty: an agent of an older version."""
    ready_endpoints: Count = 0
    created_at: Time


type Kind = Literal[
    "nodes", "pods", "workloads", "volumes", "budgets", "autoscalers", "load_balancers"
]
MOST_OF_KIND: Final[dict[Kind, int]] = {
    "nodes": 5_000,
    "pods": 30_000,
    "workloads": 20_000,
    "volumes": 20_000,
    "budgets": 10_000,
    "autoscalers": 10_000,
    "load_balancers": 5_000,
}
"""How many of each kind a snapshot holds, as a delta makes it of its base, too."""


class AgentState(Part, frozen=True, kw_only=True):
    """The agent's report of itself. Words and not a choice of them: one of a newer version is no reason to refuse it."""

    version: Word = ""
    mode: Word = ""
    """`act` or `read-only`, as its owner's policy says; empty: it cannot read the policy."""
    policy: Word = ""
    """`valid`; `invalid`: it allows nothing; `unreadable`: the API server does not answer, or refuses."""
    kinds: Annotated[tuple[Word, ...], Meta(max_length=16)] = ()
    """The kinds of instructions that the policy lets it carry out."""
    spooled: Count = 0
    """Snapshots that waited in its spool when it took this one."""
    spool_bytes: Count = 0
    """What they take of the 64 MiB."""


class Deleted(Part, array_like=True, frozen=True, kw_only=True):
    """An object of the base that is no more."""

    kind: Kind
    uid: Uid


class Objects(Part, frozen=True, kw_only=True):
    """The objects of a snapshot: of its base a delta needs no more, and usage is the larger half."""

    version: Literal[1] = 1
    cluster_id: Text
    epoch: Text
    """Begins anew, with a new UUID, whenever the agent cannot go on counting."""
    sequence: Annotated[int, Meta(ge=1, le=2**53)]
    """From 1, one more each time."""
    base: Count = 0
    """The sequence of the full snapshot that this delta is to; 0: this is a full one."""
    taken_at: Time
    kubernetes: Word
    """The version of the API server."""
    left_out: Count = 0
    """Objects that are not told of, because their names are invalid."""
    nodes: Annotated[tuple[Node, ...], Meta(max_length=MOST_OF_KIND["nodes"])] = ()
    pods: Annotated[tuple[Pod, ...], Meta(max_length=MOST_OF_KIND["pods"])] = ()
    workloads: Annotated[tuple[Workload, ...], Meta(max_length=MOST_OF_KIND["workloads"])] = ()
    volumes: Annotated[tuple[Volume, ...], Meta(max_length=MOST_OF_KIND["volumes"])] = ()
    budgets: Annotated[tuple[Budget, ...], Meta(max_length=MOST_OF_KIND["budgets"])] = ()
    autoscalers: Annotated[
        tuple[Autoscaler, ...], Meta(max_length=MOST_OF_KIND["autoscalers"])
    ] = ()
    load_balancers: Annotated[
        tuple[LoadBalancer, ...], Meta(max_length=MOST_OF_KIND["load_balancers"])
    ] = ()


class Snapshot(Objects, frozen=True, kw_only=True):
    """A cluster, or how it differs from a full snapshot."""

    usage: Annotated[tuple[Usage, ...], Meta(max_length=35_000)] = ()
    """Of nodes and pods; empty where the cluster has no metrics.k8s.io."""
    gpus: Annotated[tuple[GpuSample, ...], Meta(max_length=MOST_SAMPLES)] = ()
    """Empty where the owner names no exporter. A delta holds all of it, as usage."""
    gpus_left_out: Count = 0
    """GPUs and instances that were too many to tell."""
    agent: AgentState | None = None
    """A delta tells it, too. None: an agent of an older version."""
    deleted: Annotated[tuple[Deleted, ...], Meta(max_length=100_000)] = ()

    @property
    def full(self) -> bool:
        """Whether it stands for itself."""
        return self.base == 0


_ITEMS: Final[dict[str, type[Struct]]] = {
    "nodes": Node,
    "pods": Pod,
    "workloads": Workload,
    "volumes": Volume,
    "budgets": Budget,
    "autoscalers": Autoscaler,
    "load_balancers": LoadBalancer,
    "usage": Usage,
    "gpus": GpuSample,
    "deleted": Deleted,
}
"""What the lists of a snapshot hold."""


def encode(snapshot: Snapshot) -> bytes:
    """Return a snapshot as it travels.

    Raises:
        Unwritable: its reader would refuse it.
    """
    document = encode_document(snapshot)
    try:
        _checked(snapshot)
    except Malformed as error:
        raise Unwritable(str(error)) from None
    return compress(document)


def decode(body: bytes) -> Snapshot:
    """Return what `encode` wrote, without the objects that have a bad name.

    Raises:
        Malformed: it is no snapshot; the message names the place.
    """
    return parse(decompress(body))


def decode_objects(body: bytes) -> Objects:
    """Return the objects of a snapshot that was decoded whole before.

    Raises:
        Malformed: it is no snapshot.
    """
    return _sifted(decompress(body), Objects)


def parse(document: bytes) -> Snapshot:
    """Return the snapshot that a JSON document holds, without the objects that have a bad name.

    Raises:
        Malformed: it is no snapshot; the message names the place.
    """
    return _checked(_sifted(document, Snapshot))


def _checked(found: Snapshot) -> Snapshot:
    if found.base >= found.sequence:
        raise Malformed(f"base {found.base} is not before sequence {found.sequence} - at `$.base`")
    if found.full and found.deleted:
        raise Malformed("a full snapshot deletes nothing - at `$.deleted`")
    for kind in MOST_OF_KIND:
        _refuse_twins(kind, (each.uid for each in getattr(found, kind)))
    _refuse_twins("usage", (each.uid for each in found.usage))
    _refuse_twins(
        "gpus", ((each.node, each.gpu, each.instance_id, each.pod) for each in found.gpus)
    )
    return found


def delta(base: Snapshot, full: Snapshot) -> Snapshot:
    """Return a later full snapshot as its difference to an earlier one of the same epoch.

    Raises:
        ValueError: they are not two such.
    """
    if not base.full or base.epoch != full.epoch or base.sequence >= full.sequence:
        raise ValueError(f"{full.epoch} {full.sequence} cannot be told from {base.sequence}")
    changed, deleted = {}, []
    for kind in MOST_OF_KIND:
        before = {each.uid: each for each in getattr(base, kind)}
        after = getattr(full, kind)
        changed[kind] = tuple(each for each in after if before.get(each.uid) != each)
        gone = before.keys() - {each.uid for each in after}
        deleted += [Deleted(kind=kind, uid=uid) for uid in sorted(gone)]
    return replace(full, base=base.sequence, deleted=tuple(deleted), **changed)


def apply(base: Objects, change: Snapshot) -> Snapshot:
    """Return the full snapshot that a delta stands for. A full one is returned as it is.

    Raises:
        Malformed: the delta is to another snapshot, or the whole is larger than a snapshot may be.
    """
    if change.full:
        return change
    if (base.cluster_id, base.epoch, base.sequence) != (
        change.cluster_id,
        change.epoch,
        change.base,
    ):
        raise Malformed(f"the base {change.base} is not the snapshot {base.sequence} - at `$.base`")
    whole = {}
    for kind in MOST_OF_KIND:
        gone = {each.uid for each in change.deleted if each.kind == kind}
        objects = {e.uid: e for e in chain(getattr(base, kind), getattr(change, kind))}
        whole[kind] = tuple(each for uid, each in objects.items() if uid not in gone)
        if len(whole[kind]) > MOST_OF_KIND[kind]:
            raise Malformed(f"makes {len(whole[kind])} {kind} of its base - at `$.{kind}`")
    return replace(change, base=0, deleted=(), **whole)


def _sifted[T: Objects](document: bytes, kind: type[T]) -> T:
    found, left_out = decode_sifted(document, kind, _ITEMS)
    return replace(found, left_out=found.left_out + left_out) if left_out else found


def _refuse_twins(name: str, uids: Iterable[Hashable]) -> None:
    seen: set[Hashable] = set()
    for uid in uids:
        if uid in seen:
            raise Malformed(f"{uid!r} is there twice - at `$.{name}`")
        seen.add(uid)
