"""Kubernetes objects read into the domain's types.

What an object may leave out may be left out here too, with the API server's default in its place.
What is there and has the wrong shape, or is larger than anybody means, raises BadInput, which names
the object and the field, and nothing else is raised: tenants write these objects, and the reader of
a cluster leaves a bad one out. Numbers are held to what can be counted with.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from msgspec import Raw

from plimsoll.adapters.kubernetes import schema
from plimsoll.adapters.kubernetes.decoding import SAID, Json, decoded, naming, raw
from plimsoll.adapters.kubernetes.scheduling import (
    read_node_terms,
    read_resources,
    read_scheduling,
    read_selector,
    stays,
)
from plimsoll.domain.errors import BadInput
from plimsoll.domain.fields import Field
from plimsoll.domain.interruptions import Interruption, NewerRecord, from_record
from plimsoll.domain.kubernetes import (
    MATCHES_NOTHING,
    Budget,
    Claim,
    LabelSelection,
    Namespace,
    Node,
    NodeTerm,
    OwnerKind,
    Pod,
    Quota,
    Ref,
    ReplicaSet,
    Requirement,
    Resources,
    Scheduling,
    Selector,
    StorageClass,
    Volume,
    Workload,
    capacity_of,
    names,
)
from plimsoll.domain.observation import LONGEST_START

_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""The age of an object that does not say when it was made."""
_INSTANCE: Final = re.compile(r"aws:///[^/]*/(i-[0-9a-f]+)")
_ONE_POD: Final = "ReadWriteOncePod"
_ONE_NODE: Final = {"ReadWriteOnce", _ONE_POD}
_NOT_MADE: Final = "kubernetes.io/no-provisioner"
_OF_PODS: Final = {
    "pods": "pods",
    "count/pods": "pods",
    "cpu": "cpu",
    "requests.cpu": "cpu",
    "memory": "memory",
    "requests.memory": "memory",
    "ephemeral-storage": "ephemeral-storage",
}
"""What a ResourceQuota may limit of pods -> the name of a pod's own request. `requests.` stands before all others."""
_UNLIMITED: Final = 2**62
_MOST_PODS: Final = 200_000
"""Kubernetes is built for clusters of 150,000: https://kubernetes.io/docs/setup/best-practices/cluster-large/"""
_LONGEST_GRACE: Final = 366 * 24 * 3600
_READ: Final = {
    names.MIRROR,
    names.DELETION_COST,
    names.DO_NOT_DISRUPT,
    names.SAFE_TO_EVICT,
    *names.REVISIONS,
}
"""The annotations that are kept, beside those of ours: an object may carry 256 KiB of others."""
_REVISION: Final = re.compile(r"[0-9]{1,9}")
_SECONDS: Final = re.compile(r"[0-9]{1,6}")
"""Up to eleven days."""
_SLEEP: Final = re.compile(r"(?:^|[\s;&|(/])sleep\s+[0-9$]")


@naming("Node")
def parse_node(obj: Raw) -> Node:
    """Read a Node, with the interruption recorded on it.

    A record that cannot be read, or is about another instance, is no error of the node: it is said
    in `unreadable`.
    """
    node = decoded(obj, schema.Node)
    meta, annotations = node.metadata, _annotations(node.metadata)
    provider = _INSTANCE.fullmatch(node.spec.provider_id)
    instance = provider.group(1) if provider else None
    interruption, unreadable, newer = _record(annotations.get(names.INTERRUPTION), instance)
    amounts = node.status.allocatable or node.status.capacity
    ready = _condition(node.status.conditions, "Ready")
    since = ready.last_transition_time if ready else ""
    return Node(
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
        labels=meta.labels,
        annotations=annotations,
        taints=node.spec.taints,
        unschedulable=node.spec.unschedulable,
        ready=_holds(ready),
        ready_since=Field(since, "status.conditions.lastTransitionTime").time_or_bound(),
        allocatable=read_resources(amounts, "status.allocatable"),
        instance=instance,
        zone=meta.labels.get(names.ZONE),
        capacity=capacity_of(meta.labels),
        created=_created(meta),
        interruption=interruption,
        unreadable=unreadable,
        newer_record=newer,
    )


@naming("Pod")
def parse_pod(obj: Raw) -> Pod:
    """Read a Pod. One of which nobody can tell where it may run stands on its node all the same."""
    pod: schema.Object[Any, schema.PodStatus]
    try:
        pod = decoded(obj, schema.Pod)
        unbound = "" if pod.spec.node_name else pod.metadata.name
        scheduling = read_scheduling(pod.spec, pod.metadata.labels, unbound, pod.status)
        unread = None
    except BadInput as error:
        pod = decoded(obj, schema.BarePod)
        scheduling, unread = Scheduling(requests=Resources(pods=1)), str(error)
    meta, spec, annotations = pod.metadata, pod.spec, _annotations(pod.metadata)
    controller = meta.controller
    ready = _condition(pod.status.conditions, "Ready")
    since = ready.last_transition_time if ready else ""
    deleting = Field(meta.deletion_timestamp, "metadata.deletionTimestamp").time_or_bound()
    grace = _count(spec.termination_grace_period_seconds, _LONGEST_GRACE)
    return Pod(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
        labels=meta.labels,
        annotations=annotations,
        owner=Ref(controller.kind, meta.namespace, controller.name) if controller else None,
        node=spec.node_name or None,
        gated=bool(spec.scheduling_gates),
        foreign=spec.scheduler_name != schema.DEFAULT_SCHEDULER,
        phase=pod.status.phase,
        ready=_holds(ready),
        ready_since=Field(since, "status.conditions.lastTransitionTime").time_or_bound(),
        deleting=deleting,
        stopping_since=_stopping_since(meta, deleting),
        started=Field(pod.status.start_time, "status.startTime").time_or_bound(),
        start_seconds=_started_in(pod, ready),
        created=_created(meta),
        grace_seconds=grace,
        stated_stop_seconds=_stated(annotations, names.STOP_SECONDS, grace),
        checkpoint_seconds=_stated(annotations, names.CHECKPOINT_TAKES_SECONDS, _LONGEST_GRACE),
        sleeps_before_stop=_sleeps(pod.spec),
        generate_name=meta.generate_name,
        priority=spec.priority,
        priority_class=spec.priority_class_name,
        terminates=spec.active_deadline_seconds is not None,
        preempts=spec.preemption_policy != "Never",
        mirror=names.MIRROR in annotations
        or (controller is not None and controller.kind == OwnerKind.NODE),
        restarts=spec.restart_policy != "Never",
        scheduling=scheduling,
        unread=unread,
    )


@naming("Deployment")
def parse_deployment(obj: Raw) -> Workload:
    """Read a Deployment. Scaling alone is no rollout: that is one while old pods remain."""
    read = decoded(obj, schema.Workload)
    spec, status, rolling = read.spec, read.status, read.spec.strategy.rolling_update
    failure = _condition(status.conditions, "ReplicaFailure")
    return _workload(
        OwnerKind.DEPLOYMENT,
        read,
        max_unavailable="25%" if rolling.max_unavailable is None else rolling.max_unavailable,
        max_surge="25%" if rolling.max_surge is None else rolling.max_surge,
        strategy=spec.strategy.type,
        rolling_out=_lags(read) or status.replicas > status.updated_replicas,
        paused=spec.paused,
        min_ready_seconds=_count(spec.min_ready_seconds, _LONGEST_GRACE),
        failing_since=Field(
            failure.last_transition_time if failure else "", "status.conditions.lastTransitionTime"
        ).time_or_bound(),
        replica_failure=(failure.message or failure.reason or failure.type)[:SAID]
        if failure and _holds(failure)
        else None,
    )


@naming("Rollout")
def parse_rollout(obj: Raw) -> Workload:
    """Read a Rollout of Argo Rollouts.

    https://argo-rollouts.readthedocs.io/en/stable/features/specification/
    """
    read = decoded(obj, schema.Rollout)
    spec, canary = read.spec, read.spec.strategy.canary
    return _workload(
        OwnerKind.ROLLOUT,
        read,
        max_unavailable="25%" if canary.max_unavailable is None else canary.max_unavailable,
        max_surge="25%" if canary.max_surge is None else canary.max_surge,
        strategy="BlueGreen" if spec.strategy.blue_green is not None else "RollingUpdate",
        rolling_out=read.status.stable != read.status.current_pod_hash,
        paused=spec.paused,
        min_ready_seconds=_count(spec.min_ready_seconds, _LONGEST_GRACE),
    )


@naming("StatefulSet")
def parse_stateful_set(obj: Raw) -> Workload:
    """Read a StatefulSet. Revisions that differ below its partition are meant to, and no rollout.

    https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#update-strategies
    """
    read = decoded(obj, schema.Workload)
    status, update = read.status, read.spec.update_strategy
    unavailable = update.rolling_update.max_unavailable
    differ = status.current_revision != status.update_revision and update.type != "OnDelete"
    behind = status.updated_replicas < read.spec.replicas - update.rolling_update.partition
    return _workload(
        OwnerKind.STATEFUL_SET,
        read,
        max_unavailable=1 if unavailable is None else unavailable,
        max_surge=0,
        strategy=update.type,
        rolling_out=_lags(read) or (differ and behind),
        claim_templates=bool(read.spec.volume_claim_templates),
        first_ordinal=read.spec.ordinals.start,
    )


@naming("ReplicaSet")
def parse_any_replica_set(obj: Raw) -> ReplicaSet | Workload:
    """Read what a release needs to know of a ReplicaSet; as a workload where no Deployment or Rollout has it.

    Of a controller that nobody knows the count is not known, but that of its ReplicaSet is.
    """
    meta = decoded(obj, schema.Named).metadata
    controller = meta.controller
    if controller is None or controller.kind not in {OwnerKind.DEPLOYMENT, OwnerKind.ROLLOUT}:
        return _workload(OwnerKind.REPLICA_SET, decoded(obj, schema.Workload), rolling_out=False)
    revision = next((meta.annotations[r] for r in names.REVISIONS if r in meta.annotations), "0")
    label = next((key for key in names.HASHES if key in meta.labels), names.POD_TEMPLATE_HASH)
    return ReplicaSet(
        ref=_ref("ReplicaSet", meta),
        uid=meta.uid,
        label=label,
        hash=meta.labels.get(label, ""),
        controller=Ref(controller.kind, meta.namespace, controller.name),
        controller_uid=controller.uid,
        revision=int(revision) if _REVISION.fullmatch(revision) else 0,
    )


@naming("HorizontalPodAutoscaler")
def parse_scaler(obj: Raw) -> tuple[Ref, tuple[str, int, datetime | None]]:
    """Read which workload an autoscaler scales, its own name, its least, and when it last did."""
    read = decoded(obj, schema.Scaler)
    meta, target = read.metadata, read.spec.scale_target_ref
    scaled = Field(read.status.last_scale_time, "status.lastScaleTime").optional_time()
    least = _count(read.spec.min_replicas, _MOST_PODS)
    return Ref(target.kind, meta.namespace, target.name), (meta.name, least, scaled)


@naming("Namespace")
def parse_namespace(obj: Raw) -> Namespace:
    """Read what a namespace says of its workloads."""
    meta = decoded(obj, schema.Named).metadata
    return Namespace(
        name=meta.name,
        labels=meta.labels,
        floor=meta.annotations.get(names.MIN_ON_DEMAND),
        injects=meta.labels.get(names.INJECT_FLOORS) == "true" and meta.name != names.KUBE_SYSTEM,
        guard=None if meta.name == names.KUBE_SYSTEM else meta.labels.get(names.GUARD),
        obeys_budgets=any(
            marks.get(names.OVERRULE_BUDGETS) == names.NEVER_OVERRULED
            for marks in (meta.labels, meta.annotations)
        ),
    )


@naming("ConfigMap")
def parse_floors(obj: Raw) -> tuple[str, Mapping[str, str]]:
    """Read what the admission policy is told of a namespace."""
    read = decoded(obj, schema.ConfigMap)
    return read.metadata.namespace, read.data


@naming("VolumeAttachment")
def parse_attachment(obj: Raw) -> tuple[str, str] | None:
    """Read the node and the volume that is attached to it, or may be: a detach may hang half-way."""
    read = decoded(obj, schema.Attachment)
    volume = read.spec.source.persistent_volume_name
    return (read.spec.node_name, volume) if volume and read.status.attached else None


@naming("Service")
def parse_service(obj: Raw) -> LabelSelection:
    """Read a Service. One without a selector selects no pod."""
    read = decoded(obj, schema.Service)
    selector = Selector(labels=read.spec.selector) if read.spec.selector else MATCHES_NOTHING
    return LabelSelection(
        ref=_ref("Service", read.metadata),
        selector=selector,
        node_ports=read.spec.type in {"NodePort", "LoadBalancer"},
        local=read.spec.external_traffic_policy == "Local",
    )


@naming("NetworkPolicy")
def parse_network_policy(obj: Raw) -> LabelSelection:
    """Read a NetworkPolicy, as far as it selects the pods that it is for."""
    read = decoded(obj, schema.NetworkPolicy)
    selector = read_selector(read.spec.pod_selector, "spec.podSelector")
    return LabelSelection(ref=_ref("NetworkPolicy", read.metadata), selector=selector)


@naming("ResourceQuota")
def parse_quota(obj: Raw) -> Quota:
    """Read what pods may still request under a ResourceQuota.

    https://kubernetes.io/docs/concepts/policy/resource-quotas/
    """
    read = decoded(obj, schema.Quota)
    hard, used = _limited(read.status.hard), _limited(read.status.used)
    left = Resources.parse(hard) - Resources.parse({name: used.get(name, "0") for name in hard})
    return Quota(
        ref=_ref("ResourceQuota", read.metadata),
        left=Resources(
            cpu=left.cpu if "cpu" in hard else _UNLIMITED,
            memory=left.memory if "memory" in hard else _UNLIMITED,
            pods=left.pods if "pods" in hard else _UNLIMITED,
            extended=left.extended,
        ),
        scopes=(
            *(Requirement(key=scope, operator="Exists") for scope in read.spec.scopes),
            *(
                Requirement(key=line.scope_name, operator=line.operator, values=line.values)
                for line in read.spec.scope_selector.match_expressions
            ),
        ),
    )


def _limited(amounts: Mapping[str, str]) -> dict[str, str]:
    """Return what a quota says of pods, under the names that a pod's own requests have."""
    names_of = {name: _OF_PODS.get(name, name.removeprefix("requests.")) for name in amounts}
    return {
        names_of[name]: amount
        for name, amount in amounts.items()
        if name in _OF_PODS or (name.startswith("requests.") and name != "requests.storage")
    }


@naming("PodDisruptionBudget")
def parse_budget(obj: Raw) -> Budget:
    """Read a PodDisruptionBudget. One without a selector guards no pod, one with `{}` every pod."""
    read = decoded(obj, schema.Budget)
    return Budget(
        ref=_ref("PodDisruptionBudget", read.metadata),
        uid=read.metadata.uid,
        guards=read.metadata.labels.get(names.GUARD) == "true",
        selector=read_selector(read.spec.selector, "spec.selector"),
        min_available=read.spec.min_available,
        max_unavailable=read.spec.max_unavailable,
        disruptions_allowed=read.status.disruptions_allowed,
        missing=max(0, read.status.desired_healthy - read.status.current_healthy),
    )


@naming("PersistentVolumeClaim")
def parse_claim(obj: Raw) -> Claim:
    """Read a PersistentVolumeClaim. What its volume demands of a node is joined by `Claim.on`."""
    read = decoded(obj, schema.Claim)
    meta, spec = read.metadata, read.spec
    # One that names its volume and is not bound to it keeps its pods Pending, whatever its class.
    unbound = bool(spec.volume_name) and read.status.phase in {"Pending", "Lost"}
    return Claim(
        namespace=meta.namespace,
        name=meta.name,
        volume=spec.volume_name,
        storage_class=spec.storage_class_name,
        node_terms=() if unbound or meta.deletion_timestamp else None,
        single_node=set(spec.access_modes) <= _ONE_NODE,
        single_pod=_ONE_POD in spec.access_modes,
    )


@naming("PersistentVolume")
def parse_volume(obj: Raw) -> Volume:
    """Read a PersistentVolume, as far as it binds its pods to nodes."""
    read = decoded(obj, schema.Volume)
    return Volume(
        name=read.metadata.name, node_terms=_volume_terms(read), driver=read.spec.csi.driver
    )


@naming("StorageClass")
def parse_storage_class(obj: Raw) -> StorageClass:
    """Read a StorageClass, as far as it binds pods to nodes before they have a volume."""
    read = decoded(obj, schema.StorageClass)
    waits = read.volume_binding_mode == "WaitForFirstConsumer" and read.provisioner != _NOT_MADE
    allowed = tuple(
        NodeTerm(
            expressions=tuple(
                Requirement(key=line.key, operator="In", values=line.values)
                for line in term.match_label_expressions
            )
        )
        for term in read.allowed_topologies
    )
    return StorageClass(
        name=read.metadata.name,
        node_terms=(allowed or None) if waits else (),
        driver=read.provisioner,
    )


@naming("CSINode")
def parse_volume_limits(obj: Raw) -> tuple[str, Mapping[str, int]]:
    """Read the name of a node, and how many volumes of each CSI driver it can have."""
    read = decoded(obj, schema.CsiNode)
    counts = {each.name: each.allocatable.count for each in read.spec.drivers}
    return read.metadata.name, {name: n for name, n in counts.items() if n is not None}


def parse_selector(obj: Json | None) -> Selector:
    """Read a label selector; an absent one selects nothing, an empty one everything."""
    return read_selector(None if obj is None else decoded(raw(obj), schema.LabelSelector))


def _workload(
    kind: OwnerKind,
    read: schema.Object[schema.WorkloadSpec, Any],
    **more: Any,
) -> Workload:
    meta, template = read.metadata, read.spec.template
    return Workload(
        ref=_ref(kind.value, meta),
        uid=meta.uid,
        resource_version=meta.resource_version,
        labels=meta.labels,
        annotations=_annotations(meta),
        selector=read_selector(read.spec.selector, "spec.selector"),
        replicas=_count(read.spec.replicas, _MOST_PODS),
        scheduling=read_scheduling(template.spec, template.metadata.labels),
        pinned_to=template.spec.node_name or None,
        **more,
    )


def _volume_terms(
    read: schema.Described[schema.VolumeSpec],
) -> tuple[NodeTerm, ...] | None:
    """Return where a volume can be used. Its zone may be a label too, several joined by `__`.

    https://kubernetes.io/docs/reference/labels-annotations-taints/#topologykubernetesiozone
    """
    terms = read_node_terms(read.spec.node_affinity.required)
    zones = read.metadata.labels.get(names.ZONE)
    if not zones:
        return terms or None
    here = Requirement(key=names.ZONE, operator="In", values=tuple(zones.split("__")))
    return tuple(
        replace(term, expressions=(*term.expressions, here)) for term in terms or (NodeTerm(),)
    )


def _record(text: str | None, instance: str | None) -> tuple[Interruption | None, str | None, bool]:
    """Return what is recorded, why that is not believed, and whether a newer Plimsoll wrote it."""
    if text is None:
        return None, None, False
    try:
        record = from_record(text)
    except NewerRecord as error:
        return None, str(error), True
    except BadInput as error:
        return None, str(error), False
    if record.instance != instance:
        return None, f"the record is about {record.instance}, and the Node is {instance}", False
    return record, None, False


def _condition(conditions: tuple[schema.Condition, ...], kind: str) -> schema.Condition | None:
    return next((condition for condition in conditions if condition.type == kind), None)


def _holds(condition: schema.Condition | None) -> bool:
    return condition is not None and condition.status == "True"


def _lags(read: schema.Object[Any, schema.WorkloadStatus]) -> bool:
    return read.status.observed_generation < read.metadata.generation


def _ref(kind: str, meta: schema.Metadata) -> Ref:
    return Ref(kind, meta.namespace, meta.name)


def _stopping_since(meta: schema.Metadata, deleting: datetime | None) -> datetime | None:
    """Return when a pod was asked to stop: a shorter grace period counts from the first request.

    https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination
    """
    grace = meta.deletion_grace_period_seconds
    if deleting is None or grace is None:
        return None
    return deleting - timedelta(seconds=_count(grace, _LONGEST_GRACE))


def _started_in(
    pod: schema.Object[Any, schema.PodStatus], ready: schema.Condition | None
) -> int | None:
    """Return how many seconds after it got its node a pod was Ready, as far as that tells how long it took to start.

    One whose container was restarted became Ready once more, later than the first time.
    """
    status = pod.status
    sidecars = {c.name for c in getattr(pod.spec, "init_containers", ()) if stays(c)}
    running = (
        *status.container_statuses,
        *(c for c in status.init_container_statuses if c.name in sidecars),
    )
    if any(container.restart_count for container in running):
        return None
    scheduled = _condition(status.conditions, "PodScheduled")
    if ready is None or scheduled is None or not (_holds(ready) and _holds(scheduled)):
        return None
    try:  # `Field` takes ten times as long, and this is asked of every pod of a cluster
        took = datetime.fromisoformat(ready.last_transition_time) - datetime.fromisoformat(
            scheduled.last_transition_time
        )
    except (ValueError, TypeError, OverflowError):
        return None
    return took.seconds if timedelta() <= took <= LONGEST_START else None


def _stated(annotations: Mapping[str, str], key: str, most: int) -> int | None:
    """Return how long the owner of a pod says that something takes; no number of seconds counts as nothing."""
    stated = annotations.get(key, "")
    return min(int(stated), most) if _SECONDS.fullmatch(stated) else None


def _sleeps(spec: Any) -> bool:
    """Whether a preStop hook of a pod sleeps before its container is asked to stop."""
    sidecars = filter(stays, getattr(spec, "init_containers", ()))
    lifecycles = (c.lifecycle for c in (*sidecars, *getattr(spec, "containers", ())))
    hooks = (lifecycle.pre_stop for lifecycle in lifecycles if lifecycle is not None)
    return any(
        (hook.sleep is not None and hook.sleep.seconds > 0)
        or (hook.exec is not None and _sleeps_in(hook.exec.command))
        for hook in hooks
    )


def _sleeps_in(command: Sequence[str]) -> bool:
    """Whether a command is `sleep N`, or a shell that is given a line with it."""
    match [word.rpartition("/")[2] if n == 0 else word for n, word in enumerate(command)]:
        case ["sleep", *_]:
            return True
        case ["sh" | "ash" | "bash" | "dash", *words]:
            return any(_SLEEP.search(word) for word in words)
        case _:
            return False


def _created(meta: schema.Metadata) -> datetime:
    created = Field(meta.creation_timestamp, "metadata.creationTimestamp").optional_time()
    return created or _LONG_AGO


def _count(said: int, most: int) -> int:
    """Return a number of things: at least 0, and `most` where there are more."""
    return min(max(said, 0), most)


def _annotations(meta: schema.Metadata) -> Mapping[str, str]:
    return {
        key: value
        for key, value in meta.annotations.items()
        if key in _READ or key.startswith(names.PREFIX)
    }
