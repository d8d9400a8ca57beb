"""Small builders for tests: each has a `*_json` form as Kubernetes writes it, and an `a_*` form.

The domain forms are read from the JSON ones, so that there is one description of each object.
Everything has a default; a test names only what it is about. Uids are made from kind and name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from plimsoll.adapters.kubernetes.objects import (
    parse_any_replica_set,
    parse_budget,
    parse_claim,
    parse_deployment,
    parse_node,
    parse_pod,
    parse_stateful_set,
    parse_volume,
)
from plimsoll.domain.kubernetes import Budget, Claim, Node, Pod, Resources, Taint, Workload
from plimsoll.domain.node_groups import NodeGroup, NodeTemplate

type Json = dict[str, Any]

NOON = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)
CREATED = "2026-01-02T10:00:00Z"
ZONE_A, ZONE_B, ZONE_C = "us-east-1a", "us-east-1b", "us-east-1c"


def node_json(  # noqa: PLR0913 - a test names what it is about
    name: str = "node-1",
    *,
    cpu: str = "8",
    memory: str = "32Gi",
    pods: int = 58,
    zone: str = ZONE_A,
    capacity: str | None = "on-demand",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    unschedulable: bool = False,
    ready: bool = True,
    instance: str | None = None,
    extended: Mapping[str, str] | None = None,
) -> Json:
    """Return a Node; its instance id is made from its name unless given."""
    instance = instance or "i-" + name.encode().hex()[-17:].rjust(17, "0")
    spec: Json = {"providerID": f"aws:///{zone}/{instance}"}
    if taints:
        spec["taints"] = [dict(t) for t in taints]
    if unschedulable:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"node-{name}",
            "resourceVersion": "1",
            "creationTimestamp": CREATED,
            "labels": {
                "kubernetes.io/hostname": name,
                "topology.kubernetes.io/zone": zone,
                **({"node.kubernetes.io/capacity": capacity} if capacity else {}),
                **(labels or {}),
            },
            "annotations": dict(annotations or {}),
        },
        "spec": spec,
        "status": {
            "allocatable": {"cpu": cpu, "memory": memory, "pods": str(pods), **(extended or {})},
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def a_node(name: str = "node-1", **how: Any) -> Node:
    """Return a Node; takes what `node_json` takes."""
    return parse_node(node_json(name, **how))


def pod_spec_json(*, cpu: str | None = "100m", memory: str | None = "64Mi", **spec: Any) -> Json:
    """Return a pod spec with one container; other fields are given as Kubernetes names them."""
    requests = {k: v for k, v in (("cpu", cpu), ("memory", memory)) if v is not None}
    return {
        "containers": [{"name": "main", "image": "app", "resources": {"requests": requests}}],
        **spec,
    }


def pod_json(  # noqa: PLR0913 - a test names what it is about
    name: str = "web-1",
    *,
    namespace: str = "default",
    node: str | None = None,
    ready: bool | None = None,
    phase: str | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    owner: tuple[str, str] | None = ("ReplicaSet", "web-abc"),
    deleting: datetime | None = None,
    grace_seconds: int = 30,
    priority: int = 0,
    created: str = CREATED,
    **spec: Any,
) -> Json:
    """Return a Pod. With a node it is Running and Ready unless told otherwise.

    `owner` is (kind, name) of its controller; `cpu`, `memory` and every other keyword go to the
    spec as in `pod_spec_json`.
    """
    phase = phase or ("Running" if node else "Pending")
    ready = phase == "Running" if ready is None else ready
    metadata: Json = {
        "name": name,
        "namespace": namespace,
        "uid": f"pod-{namespace}-{name}",
        "resourceVersion": "1",
        "creationTimestamp": created,
        "labels": dict({"app": "web"} if labels is None else labels),
        "annotations": dict(annotations or {}),
    }
    if owner is not None:
        if owner[0] == "ReplicaSet":
            metadata["labels"].setdefault("pod-template-hash", owner[1].rpartition("-")[2])
            metadata["generateName"] = f"{owner[1]}-"
        metadata["ownerReferences"] = [
            {
                "apiVersion": "apps/v1",
                "kind": owner[0],
                "name": owner[1],
                "uid": f"{owner[0].lower()}-{namespace}-{owner[1]}",
                "controller": True,
            }
        ]
    if deleting is not None:
        metadata["deletionTimestamp"] = deleting.isoformat().replace("+00:00", "Z")
    if node is not None:
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": pod_spec_json(
            terminationGracePeriodSeconds=grace_seconds, priority=priority, **spec
        ),
        "status": {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def a_pod(name: str = "web-1", **how: Any) -> Pod:
    """Return a Pod; takes what `pod_json` takes."""
    return parse_pod(pod_json(name, **how))


def pods_of(name: str, count: int, **how: Any) -> list[Pod]:
    """Return pods `<name>-0` … of one ReplicaSet `<name>-abc`, labelled `app: <name>`."""
    how = {"labels": {"app": name}, "owner": ("ReplicaSet", f"{name}-abc"), **how}
    return [a_pod(f"{name}-{n}", **how) for n in range(count)]


def _workload_json(  # noqa: PLR0913 - a test names what it is about
    kind: str,
    name: str,
    *,
    namespace: str = "default",
    replicas: int = 3,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    template: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Json:
    settled = {
        "observedGeneration": 1,
        "replicas": replicas,
        "readyReplicas": replicas,
        "availableReplicas": replicas,
        "updatedReplicas": replicas,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"{kind.lower()}-{namespace}-{name}",
            "resourceVersion": "1",
            "generation": 1,
            "creationTimestamp": CREATED,
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": dict(template or pod_spec_json()),
            },
            **spec,
        },
        "status": {**settled, **(status or {})},
    }


def deployment_json(name: str = "web", **how: Any) -> Json:
    """Return a settled Deployment: `replicas`, `template` (a pod spec), `status`, …

    Other keywords go to the spec, for example `strategy` or `paused`.
    """
    return _workload_json("Deployment", name, **how)


def a_deployment(name: str = "web", **how: Any) -> Workload:
    """Return a Deployment; takes what `deployment_json` takes."""
    return parse_deployment(deployment_json(name, **how))


def replica_set_json(name: str = "web-abc", **how: Any) -> Json:
    """Return a ReplicaSet without an owner."""
    return _workload_json("ReplicaSet", name, **how)


def a_replica_set(name: str = "web-abc", **how: Any) -> Workload:
    """Return a ReplicaSet; takes what `replica_set_json` takes."""
    read = parse_any_replica_set(replica_set_json(name, **how))
    assert isinstance(read, Workload)
    return read


def stateful_set_json(name: str = "db", **how: Any) -> Json:
    """Return a settled StatefulSet."""
    return _workload_json("StatefulSet", name, **how)


def a_stateful_set(name: str = "db", **how: Any) -> Workload:
    """Return a StatefulSet; takes what `stateful_set_json` takes."""
    return parse_stateful_set(stateful_set_json(name, **how))


def budget_json(
    name: str = "web",
    *,
    namespace: str = "default",
    selector: Mapping[str, Any] | None = None,
    allowed: int = 0,
    **spec: Any,
) -> Json:
    """Return a PodDisruptionBudget over `app: <name>` that allows `allowed` disruptions now."""
    chosen = {"matchLabels": {"app": name}} if selector is None else dict(selector)
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace, "uid": f"pdb-{namespace}-{name}"},
        "spec": {"selector": chosen, **spec},
        "status": {"disruptionsAllowed": allowed},
    }


def a_budget(name: str = "web", **how: Any) -> Budget:
    """Return a PodDisruptionBudget; takes what `budget_json` takes."""
    return parse_budget(budget_json(name, **how))


def claim_json(
    name: str = "data", *, namespace: str = "default", volume: str | None = None
) -> Json:
    """Return a ReadWriteOnce claim, bound when a volume is named."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "uid": f"pvc-{namespace}-{name}"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            **({"volumeName": volume} if volume else {}),
        },
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def volume_json(name: str = "pv-1", *, zone: str = ZONE_A) -> Json:
    """Return a PersistentVolume that can be used in one zone only."""
    wanted = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "uid": f"pv-{name}"},
        "spec": {
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}}
        },
    }


def a_claim(name: str = "data", *, namespace: str = "default", zone: str | None = None) -> Claim:
    """Return a claim, bound to a volume in a zone when one is named."""
    volume = None if zone is None else parse_volume(volume_json(zone=zone))
    bound = claim_json(name, namespace=namespace, volume=None if volume is None else volume.name)
    return parse_claim(bound).on(volume)


def mounting(*claims: str) -> list[Json]:
    """Return the `volumes` of a pod that mounts these claims."""
    return [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]


def a_group(  # noqa: PLR0913 - a test names what it is about
    name: str = "base",
    *,
    kind: str = "asg",
    capacity: str = "on-demand",
    zones: Sequence[str] = (ZONE_A, ZONE_B),
    desired: int = 0,
    max_size: int = 10,
    cpu: str = "8",
    memory: str = "32Gi",
    pods: int = 58,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Taint] = (),
    launchable: bool = True,
    instances: Sequence[str] = (),
) -> NodeGroup:
    """Return a node group whose new nodes look like those of `node_json`."""
    return NodeGroup(
        kind=kind,
        name=name,
        capacity=capacity,
        zones=tuple(zones),
        desired=desired,
        min_size=0,
        max_size=max_size,
        instances=frozenset(instances),
        instance_types=("m6i.2xlarge",),
        template=NodeTemplate(
            labels={"node.kubernetes.io/capacity": capacity, **(labels or {})},
            taints=tuple(taints),
            allocatable=Resources.parse({"cpu": cpu, "memory": memory, "pods": pods}),
        ),
        launchable=launchable,
    )
