"""Kubernetes objects read into what a snapshot tells of them.

Each is held to the bounds of the wire here, one by one: the service refuses a whole snapshot for one
field, and tenants write these objects. What cannot be told raises BadInput, and is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final

from msgspec import Raw, Struct
from msgspec.structs import replace

from plimsoll.adapters.kubernetes import schema as core
from plimsoll.adapters.kubernetes.decoding import Json, decoded, naming
from plimsoll.adapters.kubernetes.scheduling import read_resources, read_scheduling, read_selector
from plimsoll.domain.fields import parse_time
from plimsoll.domain.kubernetes import (
    GPU,
    MIG_SLICES,
    OwnerKind,
    Resources,
    Selector,
    names,
    total_resources,
)
from plimsoll_agent import schema
from plimsoll_agent.wire_values import (
    LONGEST_TEXT,
    amounts,
    counted,
    created_at,
    limits_of,
    only,
    owner_of,
    within_bounds,
    word,
)
from plimsoll_service.wire import snapshot as wire

_SERVICE: Final = "kubernetes.io/service-name"
"""On an EndpointSlice, label: whose endpoints it holds."""
_EBS: Final = re.compile(r"vol-[0-9a-f]{1,40}\Z")
_UNKNOWN: Final = "unknown"
"""For the uid of what metrics.k8s.io names."""
_OOM_KILLED: Final = "OOMKilled"
_GPUS: Final = (GPU, MIG_SLICES)
"""How resources of GPUs, their replicas and slices begin."""
_TEMPLATES: Final = ("pod-template-hash", "rollouts-pod-template-hash", "controller-revision-hash")
"""On a pod, labels: the hash of its template."""
_PHASES: Final = {"Pending", "Running"}


class Budgeted(Struct, frozen=True):
    """A budget, and which pods it covers."""

    budget: wire.Budget
    selector: Selector


class Scaled(Struct, frozen=True, gc=False):
    """An autoscaler, and what it scales."""

    autoscaler: wire.Autoscaler
    kind: str
    workload: str


class Balanced(Struct, frozen=True, gc=False):
    """What has a load balancer, and the Services that it leads to."""

    load_balancer: wire.LoadBalancer
    services: tuple[str, ...]


class Endpoints(Struct, frozen=True):
    """The endpoints of a Service, by one of its slices."""

    namespace: str
    service: str
    ready: int
    """How many are ready."""
    addresses: tuple[tuple[str, str], ...] = ()
    """The uid of the pod and an address of it, as the slice says; only of a Service that is asked for."""
    ports: tuple[int, ...] = ()


class Exporter(Struct, frozen=True):
    """A pod of a DaemonSet that may tell of the GPUs of its node."""

    uid: str
    name: str
    node: str
    daemon_set: str
    """The uid of its controller."""
    addresses: tuple[str, ...]
    ports: tuple[int, ...]
    """Those that its containers name."""


@naming("Node")
def read_node(obj: Raw) -> wire.Node:
    """Read a Node: the labels and annotations of the wire."""
    read = decoded(obj, core.Node)
    conditions = {each.type: each.status for each in read.status.conditions}
    return within_bounds(
        wire.Node(
            uid=read.metadata.uid,
            name=read.metadata.name,
            provider_id=read.spec.provider_id,
            labels=only(wire.NODE_LABELS, read.metadata.labels),
            annotations=only(wire.ANNOTATIONS, read.metadata.annotations),
            taints=tuple(
                wire.Taint(key=each.key, value=each.value, effect=each.effect)  # type: ignore[arg-type] # held to it by `within_bounds`
                for each in read.spec.taints
            ),
            unschedulable=read.spec.unschedulable,
            ready=conditions.get("Ready") == "True",
            allocatable=_allocatable(read.status.allocatable),
            created_at=created_at(read.metadata),
        )
    )


@naming("Pod")
def read_pod(obj: Raw) -> wire.Pod:
    """Read a Pod, with its direct controller as owner: `topmost` finds the one above."""
    read = decoded(obj, schema.Pod)
    meta, spec = read.metadata, read.spec
    scheduling = read_scheduling(spec, {}, meta.name)
    controller = meta.controller
    gpus = _gpus(scheduling.requests)
    return within_bounds(
        wire.Pod(
            uid=meta.uid,
            namespace=meta.namespace,
            name=meta.name,
            owner=None if controller is None else owner_of(controller),
            node=spec.node_name,
            elsewhere=bool(spec.scheduling_gates) or spec.scheduler_name != core.DEFAULT_SCHEDULER,
            phase=read.status.phase if read.status.phase in _PHASES else "Unknown",  # type: ignore[arg-type] # held to it by `within_bounds`
            ready=any(c.type == "Ready" and c.status == "True" for c in read.status.conditions),
            deleting=bool(meta.deletion_timestamp),
            requests=amounts(scheduling.requests),
            limits=limits_of(spec),
            priority=spec.priority,
            restart_policy=spec.restart_policy,  # type: ignore[arg-type] # held to it by `within_bounds`
            restarted=_restarted(read.status),
            volumes=scheduling.claims,
            annotations=only(wire.ANNOTATIONS, meta.annotations),
            gpus=gpus,
            template=_template(meta.labels) if gpus else "",
            created_at=created_at(meta),
        )
    )


@naming("Namespace")
def read_namespace(obj: Raw) -> tuple[str, Mapping[str, str]]:
    """Read the floor and the promise that a namespace states for its workloads, by annotation."""
    meta = decoded(obj, core.Named).metadata
    stated = only((names.MIN_ON_DEMAND, names.KEEP_READY), meta.annotations)
    return meta.name, {key: value for key, value in stated.items() if value}


@naming("PersistentVolume")
def read_volume(obj: Raw) -> wire.Volume:
    """Read a PersistentVolume; what EBS makes of it stands in its storage class."""
    read = decoded(obj, schema.Volume)
    spec = read.spec
    claim = spec.claim_ref or schema.ClaimReference()
    since = read.status.last_phase_transition_time
    ebs = _EBS.search(spec.csi.volume_handle or spec.aws_elastic_block_store.volume_id)
    zones = {
        value
        for term in spec.node_affinity.required.node_selector_terms
        for line in term.match_expressions
        if line.key in names.ZONE_LABELS
        for value in line.values
    }
    return within_bounds(
        wire.Volume(
            uid=read.metadata.uid,
            name=read.metadata.name,
            phase=read.status.phase,  # type: ignore[arg-type] # held to it by `within_bounds`
            namespace=claim.namespace,
            claim=claim.name,
            capacity=counted(Resources.parse({"memory": spec.capacity.get("storage", 0)}).memory),
            storage_class=spec.storage_class_name,
            zone=zones.pop() if len(zones) == 1 else "",
            reclaim=spec.persistent_volume_reclaim_policy,  # type: ignore[arg-type] # held to it by `within_bounds`
            ebs=ebs[0] if ebs else "",
            since=parse_time(since) if since else None,
            created_at=created_at(read.metadata),
        )
    )


@naming("StorageClass")
def read_storage_class(obj: Raw) -> tuple[str, str]:
    """Read which type of volume a storage class asks EBS for; empty where it does not say."""
    read = decoded(obj, schema.StorageClass)
    return read.metadata.name, word(read.parameters.get("type", ""))


@naming("PodDisruptionBudget")
def read_budget(obj: Raw) -> Budgeted:
    """Read a PodDisruptionBudget."""
    read = decoded(obj, core.Budget)
    told = wire.Budget(
        uid=read.metadata.uid,
        namespace=read.metadata.namespace,
        name=read.metadata.name,
        min_available=read.spec.min_available,
        max_unavailable=read.spec.max_unavailable,
        disruptions_allowed=counted(read.status.disruptions_allowed),
    )
    return Budgeted(within_bounds(told), read_selector(read.spec.selector, "spec.selector"))


@naming("HorizontalPodAutoscaler")
def read_autoscaler(obj: Raw) -> Scaled:
    """Read a HorizontalPodAutoscaler."""
    read = decoded(obj, schema.Scaler)
    spec = read.spec
    told = wire.Autoscaler(
        uid=read.metadata.uid,
        namespace=read.metadata.namespace,
        name=read.metadata.name,
        min_replicas=counted(spec.min_replicas),
        max_replicas=counted(spec.max_replicas),
    )
    return Scaled(within_bounds(told), spec.scale_target_ref.kind, spec.scale_target_ref.name)


@naming("VerticalPodAutoscaler")
def read_vertical_autoscaler(obj: Raw) -> tuple[tuple[str, str, str], str]:
    """Read whose requests a VerticalPodAutoscaler is about, and its own name; empty where it writes none.

    https://github.com/kubernetes/autoscaler/blob/master/vertical-pod-autoscaler/docs/api.md
    """
    read = decoded(obj, schema.VerticalScaler)
    meta, target = read.metadata, read.spec.target_ref
    writes = read.spec.update_policy.update_mode != "Off"
    return (target.kind, meta.namespace, target.name), meta.name[:LONGEST_TEXT] if writes else ""


@naming("Service")
def read_service(obj: Raw) -> Balanced | None:
    """Read a Service of type LoadBalancer; None is one of another type."""
    read = decoded(obj, schema.Service)
    if read.spec.type != "LoadBalancer":
        return None
    return _balanced("Service", read, (read.metadata.name,))


@naming("Ingress")
def read_ingress(obj: Raw) -> Balanced:
    """Read an Ingress."""
    read = decoded(obj, schema.Ingress)
    paths = (path.backend for rule in read.spec.rules for path in rule.http.paths)
    backends = [*paths, *filter(None, [read.spec.default_backend])]
    return _balanced("Ingress", read, tuple({each.service.name for each in backends}))


def reader_of_slices(asked: tuple[str, str] | None) -> Callable[[Json | Raw], Endpoints]:
    """Return what reads a slice: how many endpoints are ready, and where they are if it is of the Service asked for."""

    @naming("EndpointSlice")
    def read(obj: Raw) -> Endpoints:
        found = decoded(obj, schema.Slice)
        ready = sum(endpoint.conditions.ready for endpoint in found.endpoints)
        service = found.metadata.labels.get(_SERVICE, "")
        if (found.metadata.namespace, service) != asked:
            return Endpoints(found.metadata.namespace, service, ready)
        return Endpoints(
            found.metadata.namespace,
            service,
            ready,
            addresses=tuple(
                (each.target_ref.uid, address)
                for each in found.endpoints
                for address in each.addresses
                if each.target_ref is not None and each.target_ref.kind == "Pod"
            ),
            ports=tuple(
                each.port
                for each in found.ports or ()
                if each.port is not None and each.protocol == "TCP"
            ),
        )

    return read


@naming("Pod")
def read_exporter(obj: Raw) -> Exporter | None:
    """Read a pod of a DaemonSet that listens; None is another pod."""
    read = decoded(obj, schema.ListeningPod)
    controller = read.metadata.controller
    if controller is None or controller.kind != OwnerKind.DAEMON_SET:
        return None
    return Exporter(
        uid=read.metadata.uid,
        name=read.metadata.name,
        node=read.spec.node_name,
        daemon_set=controller.uid,
        addresses=tuple(each.ip for each in read.status.pod_ips),
        ports=tuple(p.container_port for each in read.spec.containers for p in each.ports),
    )


@naming("NodeMetrics")
def read_node_usage(obj: Raw) -> tuple[str, wire.Usage]:
    """Read what a node used, by its name; its uid is not there."""
    read = decoded(obj, schema.NodeMetrics)
    return read.metadata.name, _usage(Resources.parse(read.usage))


@naming("PodMetrics")
def read_pod_usage(obj: Raw) -> tuple[tuple[str, str], wire.Usage]:
    """Read what a pod and its containers used, by its namespace and name; its uid is not there."""
    read = decoded(obj, schema.PodMetrics)
    used = [(each.name, Resources.parse(each.usage)) for each in read.containers]
    told = _usage(total_resources([each for _, each in used]))
    if len(used) <= wire.MOST_CONTAINERS:
        containers = (
            wire.ContainerUsage(name=name, cpu_m=counted(its.cpu), memory=counted(its.memory))
            for name, its in used
        )
        told = within_bounds(replace(told, containers=tuple(containers)))
    return (read.metadata.namespace, read.metadata.name), told


def _gpus(requests: Resources) -> dict[str, int]:
    found = (each for each in requests.extended if each[0].startswith(_GPUS) and each[1])
    return {name: counted(count) for name, count in islice(found, wire.MOST_GPU_RESOURCES)}


def _template(labels: Mapping[str, str]) -> str:
    return next((labels[name] for name in _TEMPLATES if name in labels), "")


def _usage(used: Resources) -> wire.Usage:
    return wire.Usage(uid=_UNKNOWN, cpu_m=counted(used.cpu), memory=counted(used.memory))


def _restarted(status: schema.PodStatus) -> tuple[wire.Restarted, ...]:
    """Return the containers that ended, and how; init containers that did their work are none of them."""
    found = []
    for each in (*status.container_statuses, *status.init_container_statuses):
        ends = [end for end in (each.state.terminated, each.last_state.terminated) if end]
        killed = [end for end in ends if end.reason == _OOM_KILLED]
        last = next(iter(killed or ends), schema.Terminated())
        if each.restart_count or killed:
            found.append(
                wire.Restarted(
                    name=each.name,
                    restarts=counted(each.restart_count),
                    reason=word(last.reason),
                    at=parse_time(last.finished_at) if last.finished_at else None,
                )
            )
    found.sort(key=lambda each: (each.reason != _OOM_KILLED, each.name))
    return tuple(found[: wire.MOST_CONTAINERS])


def _balanced(
    kind: str, read: core.Object[Any, schema.LoadBalanced], services: tuple[str, ...]
) -> Balanced:
    told = wire.LoadBalancer(
        uid=read.metadata.uid,
        kind=kind,  # type: ignore[arg-type] # one of two, by its callers
        namespace=read.metadata.namespace,
        name=read.metadata.name,
        provisioned=bool(read.status.load_balancer.ingress),
        address=next((a.hostname or a.ip for a in read.status.load_balancer.ingress), ""),
        created_at=created_at(read.metadata),
    )
    return Balanced(within_bounds(told), services)


def _allocatable(said: Mapping[str, str | int | float]) -> wire.Amounts:
    found = read_resources(said, "status.allocatable")
    return replace(amounts(found), pods=counted(found.pods))
