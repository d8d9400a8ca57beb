"""The drill of a storm: so many spot nodes with ten pods each, all noticed in the same second.

As many Deployments of ten pods have a Service each, and ten of them a namespace: controllers look through all pods of one. A pod's
start and stop are those of a small server.
"""

from __future__ import annotations

from typing import Any, Final

from benchmarks.drills import ZONES, drill, group, workload
from plimsoll_simulation.scenario.drill import Drill

PODS: Final = 10
"""On each spot node: no eleventh fits."""
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


def drain_drill(nodes: int) -> Drill:
    """Return a drill that goes on to the deadline, with on-demand headroom for all pods at hand."""
    no_new_node = "600s"  # none comes while it is measured
    headroom = {
        "name": HEADROOM,
        "kind": "static",
        "capacity": "on-demand",
        "instanceType": "m5.8xlarge",
        "zones": list(ZONES),
        "size": headroom_nodes(nodes),
        "allocatable": {"cpu": "31850m", "memory": "120Gi", "pods": 234},
        "taints": [CLOSED],
    }
    names = sorted({_namespace(number) for number in range(nodes)})
    return drill(
        horizon=f"{2 + NOTICE_SECONDS + AFTER_SECONDS}s",
        groups=[group(SPOT, "spot", "m5", nodes, 2 * nodes, startup=no_new_node), headroom],
        objects=[
            *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n}} for n in names),
            *(part for number in range(nodes) for part in _objects(number)),
        ],
        timeline=[{"at": "2s", "notice": "spot-interruption", "nodes": {"group": SPOT}}],
        of_cluster={"pods": {"startup": "5s", "stop": "3s"}},
    )


def headroom_nodes(nodes: int) -> int:
    """Return how many on-demand nodes stand ready for the pods of so many spot nodes."""
    return int(SPARE * nodes * PODS / ON_HEADROOM) + 1


def _namespace(number: int) -> str:
    return f"team-{number // TOGETHER}"


def _objects(number: int) -> tuple[Any, Any]:
    """Return a Deployment and its Service."""
    deployment = workload(number, PODS, cpu="790m", namespace=_namespace(number))
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": deployment["metadata"],
        "spec": {"selector": {"app": f"app-{number}"}, "ports": [{"port": 80}]},
    }
    return deployment, service
