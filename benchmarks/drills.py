"""Drills made to size: their node groups and Deployments, and the drill that is read of them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from plimsoll_simulation.scenario.drill import Drill, read_drill

CLUSTER: Final = "harbor"
ZONES: Final = ("us-east-1a", "us-east-1b", "us-east-1c")


def group(name: str, capacity: str, family: str, size: int, most: int, **more: Any) -> Any:
    """Return a node group over three zones: an Auto Scaling group of 2xlarge instances, unless `more` says otherwise."""
    return {
        "name": name,
        "kind": "asg",
        "capacity": capacity,
        "instanceType": f"{family}.2xlarge",
        "zones": list(ZONES),
        "size": size,
        "max": most,
        "startup": "50s..90s",
        "allocatable": {"cpu": "7910m", "memory": "29Gi", "pods": 58},
        **more,
    }


def workload(number: int, replicas: int, *, cpu: str = "500m", namespace: str = "default") -> Any:
    """Return the Deployment `app-<number>`."""
    name = f"app-{number}"
    requests = {"cpu": cpu, "memory": "1Gi"}
    container = {"name": "app", "image": "example/app", "resources": {"requests": requests}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [container]},
            },
        },
    }


def scaled(at: str, replicas: int) -> Any:
    """Return the end of a timeline: the owner scales `app-0`, so that no drill ends before."""
    web = {"kind": "Deployment", "namespace": "default", "name": "app-0", "replicas": replicas}
    return {"at": at, "scale": web}


def drill(
    *,
    horizon: str,
    groups: Sequence[Any],
    objects: Iterable[Any],
    timeline: Sequence[Any],
    of_cluster: dict[str, Any] | None = None,
    **spec: Any,
) -> Drill:
    """Return a drill of one cluster; `of_cluster` and `spec` are further fields of both."""
    cluster = {"name": CLUSTER, "nodeGroups": groups, "manifests": ["workloads.yaml"]}
    clusters = [cluster | (of_cluster or {})]
    document = {
        "apiVersion": "plimsoll.dev/v1",
        "kind": "Drill",
        "metadata": {"name": "benchmark"},
        "spec": {"horizon": horizon, "clusters": clusters, "timeline": timeline, **spec},
    }
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "workloads.yaml").write_text(yaml.safe_dump_all(objects))
        (Path(folder) / "drill.yaml").write_text(yaml.safe_dump(document))
        return read_drill(Path(folder) / "drill.yaml")
