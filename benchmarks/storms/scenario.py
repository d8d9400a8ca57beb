"""The drill of a storm: so many spot nodes with ten pods each, all noticed in the same second.

As many Deployments of ten pods have a Service each, and ten of them a namespace: controllers look through all pods of one. A pod's
start and stop are those of a small server.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

import yaml

from plimsoll_testbed.scenario.drill import Drill, read_drill

PODS: Final = 10
"""On each spot node: no eleventh fits."""
CLUSTER: Final = "harbor"
SPOT: Final = "spot"
HEADROOM: Final = "headroom"
CLOSED: Final = {"key": "storm.example/closed", "effect": "NoSchedule"}
"""Keeps the headroom empty until the storm begins, so that every pod starts on a spot node."""
NOTICE_SECONDS: Final = 120
AFTER_SECONDS: Final = 60
"""How long is looked on after the instances went: what was not replaced is down from then on."""
ON_HEADROOM: Final = 40
"""Pods that one node of the headroom can hold."""
TOGETHER: Final = 10
"""Workloads in a namespace."""
SPARE: Final = 1.2
"""Room for so many times the pods: a scheduler deals unevenly."""

_ZONES = ["us-east-1a", "us-east-1b", "us-east-1c"]


def cordon_drill(nodes: int) -> Drill:
    """Return a drill of spot nodes alone, which ends as soon as they are cordoned."""
    return _read(nodes, [_spot(nodes)], horizon="60s", pods={})


def drain_drill(nodes: int) -> Drill:
    """Return a drill that goes on to the deadline, with on-demand headroom for all pods at hand."""
    headroom = {
        "name": HEADROOM,
        "kind": "static",
        "capacity": "on-demand",
        "instanceType": "m5.8xlarge",
        "zones": _ZONES,
        "size": headroom_nodes(nodes),
        "allocatable": {"cpu": "31850m", "memory": "120Gi", "pods": 234},
        "taints": [CLOSED],
    }
    return _read(
        nodes,
        [_spot(nodes), headroom],
        horizon=f"{2 + NOTICE_SECONDS + AFTER_SECONDS}s",
        pods={"startup": "5s", "stop": "3s"},
    )


def headroom_nodes(nodes: int) -> int:
    """Return how many on-demand nodes stand ready for the pods of so many spot nodes."""
    return int(SPARE * nodes * PODS / ON_HEADROOM) + 1


def _spot(nodes: int) -> dict[str, Any]:
    return {
        "name": SPOT,
        "kind": "asg",
        "capacity": "spot",
        "instanceType": "m5.2xlarge",
        "zones": _ZONES,
        "size": nodes,
        "max": 2 * nodes,
        "startup": "600s",  # no new node comes while it is measured
        "allocatable": {"cpu": "7910m", "memory": "29Gi", "pods": 58},
    }


def _read(nodes: int, groups: list[dict[str, Any]], *, horizon: str, pods: dict[str, str]) -> Drill:
    cluster = {"name": CLUSTER, "nodeGroups": groups, "manifests": ["workloads.yaml"], "pods": pods}
    scenario = {
        "apiVersion": "plimsoll.dev/v1",
        "kind": "Drill",
        "metadata": {"name": "storm"},
        "spec": {
            "horizon": horizon,
            "clusters": [cluster],
            "timeline": [{"at": "2s", "notice": "spot-interruption", "nodes": {"group": SPOT}}],
        },
    }
    with tempfile.TemporaryDirectory() as folder:
        names = {_namespace(number) for number in range(nodes)}
        workloads = [
            *(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n}}
                for n in sorted(names)
            ),
            *(part for number in range(nodes) for part in _workload(number)),
        ]
        (Path(folder) / "workloads.yaml").write_text(yaml.safe_dump_all(workloads))
        (Path(folder) / "drill.yaml").write_text(yaml.safe_dump(scenario))
        return read_drill(Path(folder) / "drill.yaml")


def _namespace(number: int) -> str:
    return f"team-{number // TOGETHER}"


def _workload(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    labels = {"app": f"app-{number}"}
    requests = {"cpu": "790m", "memory": "1Gi"}
    container = {"name": "app", "image": "example/app", "resources": {"requests": requests}}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": f"app-{number}", "namespace": _namespace(number)},
        "spec": {"selector": labels, "ports": [{"port": 80}]},
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"app-{number}", "namespace": _namespace(number)},
        "spec": {
            "replicas": PODS,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    return deployment, service
