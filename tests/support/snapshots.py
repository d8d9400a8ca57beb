"""Builders of what an agent tells."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from plimsoll_service.wire.snapshot import (
    Amounts,
    Container,
    LimitRanges,
    Node,
    Owner,
    Pod,
    Snapshot,
    Usage,
    Workload,
)

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
GIB = 2**30
LABELS = {
    "node.kubernetes.io/instance-type": "m5.large",
    "topology.kubernetes.io/region": "us-east-1",
    "topology.kubernetes.io/zone": "us-east-1a",
    "kubernetes.io/arch": "amd64",
    "kubernetes.io/os": "linux",
    "node.kubernetes.io/capacity": "on-demand",
}


def amounts(cpu_m: int = 0, memory: int = 0, pods: int = 0) -> Amounts:
    return Amounts(cpu_m=cpu_m, memory=memory, pods=pods)


def wire_node(name: str, *, labels: dict[str, str] | None = None, **changes: Any) -> Node:
    facts: dict[str, Any] = {
        "uid": f"uid-{name}",
        "name": name,
        "provider_id": f"aws:///us-east-1a/i-{name}",
        "labels": LABELS | (labels or {}),
        "allocatable": amounts(1930, 7 * GIB, 29),
        "created_at": NOW,
    }
    return Node(**facts | changes)


def wire_workload(name: str, *, replicas: int = 1, **changes: Any) -> Workload:
    facts: dict[str, Any] = {
        "uid": f"uid-{name}",
        "kind": "Deployment",
        "namespace": "shop",
        "name": name,
        "replicas": replicas,
        "ready": replicas,
        "requests": amounts(500, GIB),
        "limits": amounts(),
        "limit_ranges": LimitRanges(),
        "created_at": NOW,
    } | changes
    main = Container(name="main", requests=facts["requests"], limits=facts["limits"])
    return Workload(**{"template": (main,)} | facts)


def wire_pods(workload: Workload, *nodes: str, **changes: Any) -> tuple[Pod, ...]:
    """Return a pod of a workload on each of the nodes."""
    facts: dict[str, Any] = {
        "namespace": workload.namespace,
        "owner": Owner(kind=workload.kind, name=workload.name, uid=workload.uid),
        "requests": workload.requests,
        "limits": workload.limits,
        "annotations": workload.annotations,
        "created_at": NOW,
    }
    return tuple(
        Pod(
            uid=f"{workload.uid}-{number}",
            name=f"{workload.name}-{number}",
            node=node,
            **facts | changes,
        )
        for number, node in enumerate(nodes)
    )


def wire_snapshot(**changes: Any) -> Snapshot:
    """Return a full snapshot of a small cluster."""
    web = wire_workload("web", replicas=2)
    facts: dict[str, Any] = {
        "cluster_id": "harbor",
        "epoch": "6f1f3f7e-1b1c-4d8e-9d43-0d3d1f2f9a10",
        "sequence": 1,
        "taken_at": NOW,
        "kubernetes": "v1.36.3",
        "nodes": (wire_node("a"), wire_node("b")),
        "workloads": (web,),
        "pods": wire_pods(web, "a", "b"),
        "usage": (Usage(uid="uid-web-0", cpu_m=100, memory=GIB // 4),),
    }
    return Snapshot(**facts | changes)
