"""Kubernetes objects, as JSON, read into the domain's types.

What an object may leave out may be left out here too, with the API server's default in its place.
What is there and has the wrong shape, or is larger than anybody means, raises BadInput, which names
the object and the field, and nothing else is raised: tenants write these objects, and the reader of
a cluster leaves a bad one out. Numbers are held to what can be counted with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import wraps
from typing import Any, Final

from plimsoll.domain import names
from plimsoll.domain.errors import BadInput
from plimsoll.domain.fields import Field
from plimsoll.domain.interruptions import Interruption, NewerRecord, from_record
from plimsoll.domain.nodes import Node, Taint
from plimsoll.domain.pods import OwnerKind, Pod, Ref, Scheduling, Selector
from plimsoll.domain.quantities import Resources
from plimsoll.domain.scheduling import read_scheduling, read_selector
from plimsoll.domain.selectors import NOTHING
from plimsoll.domain.stop_time import stop_seconds
from plimsoll.domain.workloads import (
    Budget,
    Claim,
    LabelSelection,
    Namespace,
    Quota,
    ReplicaSet,
    Volume,
    Workload,
)

type Json = Mapping[str, Any]

_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""The age of an object that does not say when it was made."""
_INSTANCE: Final = re.compile(r"aws:///[^/]*/(i-[0-9a-f]+)")
_ONE_NODE: Final = {"ReadWriteOnce", "ReadWriteOncePod"}
_OF_PODS: Final = {
    "pods": "pods",
    "count/pods": "pods",
    "cpu": "cpu",
    "requests.cpu": "cpu",
    "memory": "memory",
    "requests.memory": "memory",
}
"""What a ResourceQuota may limit of pods -> the name of a pod's own request."""
_UNLIMITED: Final = 2**62
_MOST_PODS: Final = 200_000
"""Kubernetes is built for clusters of 150,000: https://kubernetes.io/docs/setup/best-practices/cluster-large/"""
_LONGEST_GRACE: Final = 366 * 24 * 3600
_SAID: Final = 300
"""Characters that are kept of what an object says in words, and of a complaint about it."""
_READ: Final = {names.MIRROR, names.DELETION_COST, *names.REVISIONS}
"""The annotations that are read, beside those of ours: an object may carry 256 KiB of others."""
_REVISION: Final = re.compile(r"[0-9]{1,9}")


def _naming[T](kind: str) -> Callable[[Callable[[Field], T]], Callable[[Json], T]]:
    """Put kind and name of the object before every complaint about it, and let nothing else out."""

    def around(read: Callable[[Field], T]) -> Callable[[Json], T]:
        @wraps(read)
        def named(obj: Json) -> T:
            try:
                return read(Field(obj).present())
            except Exception as error:  # whatever an object is made of, it costs itself only
                why = error if isinstance(error, BadInput) else type(error).__name__
                raise BadInput(f"{kind} {_name_of(obj)}: {why}"[:_SAID]) from error

        return named

    return around


@_naming("Node")
def parse_node(obj: Field) -> Node:
    """Read a Node, with the interruption recorded on it.

    A record that cannot be read, or is about another instance, is no error of the node: it is said
    in `unreadable`.
    """
    metadata, spec, status = obj["metadata"], obj["spec"], obj["status"]
    labels, annotations = metadata["labels"].pairs(), _annotations(metadata)
    provider = _INSTANCE.fullmatch(spec["providerID"].text())
    instance = provider.group(1) if provider else None
    interruption, unreadable, newer = _record(annotations.get(names.INTERRUPTION), instance)
    return Node(
        name=metadata["name"].text(),
        uid=metadata["uid"].text(),
        resource_version=metadata["resourceVersion"].text(),
        labels=labels,
        annotations=annotations,
        taints=tuple(
            Taint(key=t["key"].text(), value=t["value"].text(), effect=t["effect"].text())
            for t in spec["taints"].each()
        ),
        unschedulable=spec["unschedulable"].flag(),
        ready=_condition(status, "Ready"),
        allocatable=(status["allocatable"] or status["capacity"]).resources(),
        instance=instance,
        zone=labels.get(names.ZONE),
        capacity=capacity_of(labels),
        created=metadata["creationTimestamp"].optional_time() or _LONG_AGO,
        interruption=interruption,
        unreadable=unreadable,
        newer_record=newer,
    )


@_naming("Pod")
def parse_pod(obj: Field) -> Pod:
    """Read a Pod."""
    metadata, spec, status = obj["metadata"], obj["spec"], obj["status"]
    name, namespace = metadata["name"].text(), metadata["namespace"].text("default")
    labels, annotations = metadata["labels"].pairs(), _annotations(metadata)
    owner = _owner(metadata["ownerReferences"], namespace)
    node = spec["nodeName"].text() or None
    scheduling, unread = _scheduling(spec, labels, name)
    grace = spec["terminationGracePeriodSeconds"].count(30, most=_LONGEST_GRACE)
    return Pod(
        namespace=namespace,
        name=name,
        uid=metadata["uid"].text(),
        resource_version=metadata["resourceVersion"].text(),
        labels=labels,
        annotations=annotations,
        owner=owner,
        node=node,
        phase=status["phase"].text("Pending"),
        ready=_condition(status, "Ready"),
        ready_since=_since(status, "Ready"),
        deleting=metadata["deletionTimestamp"].time_or_bound(),
        created=metadata["creationTimestamp"].optional_time() or _LONG_AGO,
        grace_seconds=grace,
        stop_seconds=stop_seconds(grace, annotations, volumes=bool(scheduling.claims or unread)),
        generate_name=metadata["generateName"].text(),
        priority=spec["priority"].whole(),
        mirror=names.MIRROR in annotations or (owner is not None and owner.kind == OwnerKind.NODE),
        restarts=spec["restartPolicy"].text("Always") != "Never",
        scheduling=scheduling,
        unread=unread,
    )


def _scheduling(spec: Field, labels: Mapping[str, str], name: str) -> tuple[Scheduling, str | None]:
    """Read where a pod may run, or say why that cannot be read: it stands on its node all the same."""
    try:
        return read_scheduling(spec, labels, name), None
    except (BadInput, RecursionError) as error:
        return Scheduling(requests=Resources(pods=1)), str(error)


@_naming("Deployment")
def parse_deployment(obj: Field) -> Workload:
    """Read a Deployment. Scaling alone is no rollout: that is one while old pods remain."""
    spec, status = obj["spec"], obj["status"]
    rolling = spec["strategy"]["rollingUpdate"]
    unavailable, surge = (rolling[k].count_or_share() for k in ("maxUnavailable", "maxSurge"))
    return _workload(
        obj,
        OwnerKind.DEPLOYMENT,
        max_unavailable="25%" if unavailable is None else unavailable,
        max_surge="25%" if surge is None else surge,
        strategy=spec["strategy"]["type"].text("RollingUpdate"),
        rolling_out=_lags(obj) or status["replicas"].whole() > status["updatedReplicas"].whole(),
        paused=spec["paused"].flag(),
        min_ready_seconds=spec["minReadySeconds"].count(most=_LONGEST_GRACE),
        replica_failure=_message(status, "ReplicaFailure"),
    )


@_naming("Rollout")
def parse_rollout(obj: Field) -> Workload:
    """Read a Rollout of Argo Rollouts.

    https://argo-rollouts.readthedocs.io/en/stable/features/specification/
    """
    strategy, status = obj["spec"]["strategy"], obj["status"]
    canary = strategy["canary"]
    unavailable, surge = (canary[k].count_or_share() for k in ("maxUnavailable", "maxSurge"))
    return _workload(
        obj,
        OwnerKind.ROLLOUT,
        max_unavailable="25%" if unavailable is None else unavailable,
        max_surge="25%" if surge is None else surge,
        strategy="BlueGreen" if strategy["blueGreen"] else "RollingUpdate",
        rolling_out=status["stableRS"].text() != status["currentPodHash"].text(),
        paused=obj["spec"]["paused"].flag(),
        min_ready_seconds=obj["spec"]["minReadySeconds"].count(most=_LONGEST_GRACE),
    )


@_naming("StatefulSet")
def parse_stateful_set(obj: Field) -> Workload:
    """Read a StatefulSet. Revisions that differ below its partition are meant to, and no rollout.

    https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#update-strategies
    """
    spec, status = obj["spec"], obj["status"]
    update = spec["updateStrategy"]
    unavailable = update["rollingUpdate"]["maxUnavailable"].count_or_share()
    current, newest = (status[k].text() for k in ("currentRevision", "updateRevision"))
    behind = status["updatedReplicas"].whole() < (
        spec["replicas"].whole(1) - update["rollingUpdate"]["partition"].whole()
    )
    strategy = update["type"].text("RollingUpdate")
    return _workload(
        obj,
        OwnerKind.STATEFUL_SET,
        max_unavailable=1 if unavailable is None else unavailable,
        max_surge=0,
        strategy=strategy,
        rolling_out=_lags(obj) or (current != newest and behind and strategy != "OnDelete"),
        claim_templates=any(spec["volumeClaimTemplates"].each()),
    )


@_naming("ReplicaSet")
def parse_any_replica_set(obj: Field) -> ReplicaSet | Workload:
    """Read what a release needs to know of a ReplicaSet; as a workload where nobody controls it."""
    metadata = obj["metadata"]
    namespace = metadata["namespace"].text("default")
    for reference in metadata["ownerReferences"].each():
        if reference["controller"].flag():
            labels, annotations = metadata["labels"].pairs(), _annotations(metadata)
            revision = next((annotations[r] for r in names.REVISIONS if r in annotations), "0")
            label = next((key for key in names.HASHES if key in labels), names.POD_TEMPLATE_HASH)
            return ReplicaSet(
                ref=_ref("ReplicaSet", metadata),
                uid=metadata["uid"].text(),
                label=label,
                hash=labels.get(label, ""),
                controller=Ref(reference["kind"].text(), namespace, reference["name"].text()),
                controller_uid=reference["uid"].text(),
                revision=int(revision) if _REVISION.fullmatch(revision) else 0,
            )
    return _workload(obj, OwnerKind.REPLICA_SET, rolling_out=False)


@_naming("HorizontalPodAutoscaler")
def parse_scaler(obj: Field) -> tuple[Ref, tuple[str, int, datetime | None]]:
    """Read which workload an autoscaler scales, its own name, its least, and when it last did."""
    metadata, spec = obj["metadata"], obj["spec"]
    target, least = spec["scaleTargetRef"], spec["minReplicas"].count(1, most=_MOST_PODS)
    namespace = metadata["namespace"].text("default")
    ref = Ref(target["kind"].text(), namespace, target["name"].text())
    return ref, (metadata["name"].text(), least, obj["status"]["lastScaleTime"].optional_time())


@_naming("Namespace")
def parse_namespace(obj: Field) -> Namespace:
    """Read what a namespace says of the on-demand floors of its workloads."""
    metadata = obj["metadata"]
    name = metadata["name"].text()
    return Namespace(
        name=name,
        floor=_annotations(metadata).get(names.MIN_ON_DEMAND),
        injects=metadata["labels"].pairs().get(names.INJECT_FLOORS) == "true"
        and name != names.KUBE_SYSTEM,
    )


@_naming("ConfigMap")
def parse_floors(obj: Field) -> tuple[str, Mapping[str, str]]:
    """Read what the admission policy is told of a namespace."""
    return obj["metadata"]["namespace"].text(), obj["data"].pairs()


@_naming("VolumeAttachment")
def parse_attachment(obj: Field) -> tuple[str, str] | None:
    """Read the node and the volume that is attached to it, or may be: a detach may hang half-way."""
    spec = obj["spec"]
    volume = spec["source"]["persistentVolumeName"].text()
    return (spec["nodeName"].text(), volume) if volume and obj["status"]["attached"] else None


@_naming("Service")
def parse_service(obj: Field) -> LabelSelection:
    """Read a Service. One without a selector selects no pod."""
    labels = obj["spec"]["selector"].pairs()
    selector = Selector(labels=labels) if labels else NOTHING
    return LabelSelection(ref=_ref("Service", obj["metadata"]), selector=selector)


@_naming("NetworkPolicy")
def parse_network_policy(obj: Field) -> LabelSelection:
    """Read a NetworkPolicy, as far as it selects the pods that it is for."""
    selector = read_selector(obj["spec"]["podSelector"])
    return LabelSelection(ref=_ref("NetworkPolicy", obj["metadata"]), selector=selector)


@_naming("ResourceQuota")
def parse_quota(obj: Field) -> Quota:
    """Read what pods may still request under a ResourceQuota.

    https://kubernetes.io/docs/concepts/policy/resource-quotas/
    """
    hard, used = (_limited(obj["status"][key]) for key in ("hard", "used"))
    left = Resources.parse(hard) - Resources.parse({name: used.get(name, "0") for name in hard})
    return Quota(
        ref=_ref("ResourceQuota", obj["metadata"]),
        left=Resources(
            cpu=left.cpu if "cpu" in hard else _UNLIMITED,
            memory=left.memory if "memory" in hard else _UNLIMITED,
            pods=left.pods if "pods" in hard else _UNLIMITED,
        ),
    )


def _limited(amounts: Field) -> dict[str, str]:
    """Return what a quota says of pods, under the names that a pod's own requests have."""
    named = amounts.pairs()
    return {_OF_PODS[name]: amount for name, amount in named.items() if name in _OF_PODS}


@_naming("PodDisruptionBudget")
def parse_budget(obj: Field) -> Budget:
    """Read a PodDisruptionBudget. One without a selector guards no pod, one with `{}` every pod."""
    metadata, spec, status = obj["metadata"], obj["spec"], obj["status"]
    return Budget(
        ref=_ref("PodDisruptionBudget", metadata),
        selector=read_selector(spec["selector"]),
        min_available=spec["minAvailable"].count_or_share(),
        max_unavailable=spec["maxUnavailable"].count_or_share(),
        disruptions_allowed=status["disruptionsAllowed"].whole(),
        missing=max(0, status["desiredHealthy"].whole() - status["currentHealthy"].whole()),
    )


@_naming("PersistentVolumeClaim")
def parse_claim(obj: Field) -> Claim:
    """Read a PersistentVolumeClaim. What its volume demands of a node is joined by `Claim.on`."""
    metadata, spec = obj["metadata"], obj["spec"]
    return Claim(
        namespace=metadata["namespace"].text("default"),
        name=metadata["name"].text(),
        volume=spec["volumeName"].text(),
        single_node=set(spec["accessModes"].texts()) <= _ONE_NODE,
    )


@_naming("PersistentVolume")
def parse_volume(obj: Field) -> Volume:
    """Read a PersistentVolume, as far as it binds its pods to nodes."""
    return Volume(name=obj["metadata"]["name"].text(), node_requirements=_volume_requirements(obj))


def parse_selector(obj: Json | None) -> Selector:
    """Read a label selector; an absent one selects nothing, an empty one everything."""
    return read_selector(Field(obj, "selector"))


def capacity_of(labels: Mapping[str, str]) -> str | None:
    """Return `on-demand` or `spot` as the first capacity label says, or None."""
    for name in names.CAPACITY_LABELS:
        if name in labels:
            said = labels[name].lower().replace("_", "-")
            return said if said in {"on-demand", "spot"} else None
    return None


def _workload(obj: Field, kind: OwnerKind, **more: Any) -> Workload:
    metadata, spec = obj["metadata"], obj["spec"]
    template = spec["template"]
    return Workload(
        ref=_ref(kind.value, metadata),
        uid=metadata["uid"].text(),
        resource_version=metadata["resourceVersion"].text(),
        labels=metadata["labels"].pairs(),
        annotations=_annotations(metadata),
        selector=read_selector(spec["selector"]),
        replicas=spec["replicas"].count(1, most=_MOST_PODS),
        scheduling=read_scheduling(template["spec"], template["metadata"]["labels"].pairs()),
        **more,
    )


def _volume_requirements(obj: Field) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return label keys and allowed values. Of several terms, what all of them name is kept.

    A volume without node affinity may carry its zone as a label, several joined by `__`.
    https://kubernetes.io/docs/reference/labels-annotations-taints/#topologykubernetesiozone
    """
    terms = [
        {e["key"].text(): e["values"].texts() for e in t["matchExpressions"].each() if _is_in(e)}
        for t in obj["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"].each()
    ]
    if not terms:
        zone = obj["metadata"]["labels"].pairs().get(names.ZONE)
        return ((names.ZONE, tuple(zone.split("__"))),) if zone else ()
    shared = set.intersection(*(set(term) for term in terms))
    return tuple(
        (key, tuple(sorted({value for term in terms for value in term[key]})))
        for key in sorted(shared)
    )


def _is_in(expression: Field) -> bool:
    return expression["operator"].text() == "In"


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


def _condition(status: Field, kind: str) -> bool:
    return any(
        c["type"].value == kind and c["status"].value == "True" for c in status["conditions"].each()
    )


def _since(status: Field, kind: str) -> datetime | None:
    for condition in status["conditions"].each():
        if condition["type"].value == kind:
            return condition["lastTransitionTime"].time_or_bound()
    return None


def _message(status: Field, kind: str) -> str | None:
    for condition in status["conditions"].each():
        if condition["type"].value == kind and condition["status"].value == "True":
            return (condition["message"].text() or condition["reason"].text() or kind)[:_SAID]
    return None


def _owner(references: Field, namespace: str) -> Ref | None:
    for reference in references.each():
        if reference["controller"].flag():
            return Ref(reference["kind"].text(), namespace, reference["name"].text())
    return None


def _lags(obj: Field) -> bool:
    return obj["status"]["observedGeneration"].whole() < obj["metadata"]["generation"].whole()


def _ref(kind: str, metadata: Field) -> Ref:
    return Ref(kind, metadata["namespace"].text("default"), metadata["name"].text())


def _annotations(metadata: Field) -> Mapping[str, str]:
    pairs = metadata["annotations"].pairs()
    return {k: v for k, v in pairs.items() if k in _READ or k.startswith(names.PREFIX)}


def _name_of(obj: Any) -> str:
    """Return what an object calls itself, however broken it is."""
    metadata = obj.get("metadata") if isinstance(obj, Mapping) else None
    said = [metadata.get(k) for k in ("namespace", "name")] if isinstance(metadata, Mapping) else []
    named = [ascii(part)[1:-1][:253] for part in said if isinstance(part, str) and part]
    return "/".join(named) or "(without a name)"
