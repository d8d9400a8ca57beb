"""Clusters and workloads with on-demand floors, for every test of placement."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from plimsoll.domain.actions import LabelNode
from plimsoll.domain.kubernetes import Node, Pod, Ref
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement import ON_DEMAND, Layout, label_key, plan_placement
from plimsoll.domain.placement.injection import spread_keys
from plimsoll.domain.placement.pending import without_spread_groups
from plimsoll.domain.scheduling import ClusterSnapshot
from tests.support.builders import NOON, a_pod
from tests.support.workload_sets import WiredServices, deployment

PENDING_SECONDS: Final = 90.0
"""How long a pod may be Pending because of our constraint while it would fit without it."""


def spread_over(layout: Layout | int, app: str = "web") -> dict[str, Any]:
    """Return the field of a pod's spec that spreads the pods of an app by a layout.

    A number is one of spot groups, beside one on-demand group.
    """
    layout = Layout(1, layout) if isinstance(layout, int) else layout
    constraint = {
        "maxSkew": 1,
        "topologyKey": label_key(layout),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
        "matchLabelKeys": ["pod-template-hash"],
        "nodeTaintsPolicy": "Honor",
    }
    return {"topologySpreadConstraints": [constraint]}


def labelled(nodes: list[Node], seen: Observation) -> list[Node]:
    """Return the nodes as they are once the placement plan is carried out."""
    changes = {
        step.action.node.name: step.action.labels
        for step in plan_placement(seen, NOON).steps
        if isinstance(step.action, LabelNode)
    }
    return [
        replace(
            n,
            labels={
                k: v for k, v in {**n.labels, **changes.get(n.name, {})}.items() if v is not None
            },
        )
        for n in nodes
    ]


def scheduled(nodes: list[Node], count: int, layout: Layout | int, **how: Any) -> list[Pod]:
    """Return the pods of a workload, each on the node that the scheduler chooses for it."""
    snapshot = ClusterSnapshot(nodes, [])
    pods = []
    for n in range(count):
        pod = a_pod(f"web-{n}", **spread_over(layout), **how)
        node = snapshot.choose(pod)
        if node is not None:
            snapshot.place(pod, node.name)
            pod = replace(pod, node=node.name, phase="Running", ready=True)
        pods.append(pod)
    return pods


def a_cluster(cpu: str = "8", **how: Any) -> WiredServices:
    """Return a cluster with three on-demand nodes and spot nodes of two families."""
    wired = WiredServices(**how)
    for n in range(3):
        wired.join(f"od-{n}", cpu=cpu)
    for family in ("m5", "c5"):
        for n in range(2):
            labels = {"node.kubernetes.io/instance-type": f"{family}.large"}
            wired.join(f"{family}-{n}", capacity="spot", labels=labels, cpu=cpu)
    return wired


def web(floor: str = "3", replicas: int = 9, layout: Layout | int = 2) -> dict[str, Any]:
    manifest = deployment(replicas=replicas, **spread_over(layout))
    manifest["metadata"]["annotations"] = {"plimsoll.dev/min-on-demand": floor}
    return manifest


def standing(wired: WiredServices) -> Counter[str]:
    """Return how many Ready pods stand on nodes of each family."""
    seen = wired.api.observe()
    return Counter((p.node or "").partition("-")[0] for p in seen.pods if p.serving)


def waits_in_vain(seen: Observation, now: datetime) -> list[str]:
    """Return the pods that our constraint alone keeps Pending, for longer than it may."""
    snapshot = ClusterSnapshot(seen.nodes, seen.pods, seen.claims)
    return [
        pod.name
        for pod in seen.pods
        if pod.pending
        and (now - pod.created).total_seconds() > PENDING_SECONDS
        and spread_keys(pod.scheduling)
        and snapshot.choose(_unconstrained(pod)) is not None
    ]


def on_demand(seen: Observation, workload: Ref) -> tuple[int, int]:
    """Return how many Ready pods of a workload stand on on-demand, and how many could."""
    nodes = {n.name: n for n in seen.nodes if n.capacity == ON_DEMAND}
    snapshot = ClusterSnapshot(nodes.values(), seen.pods, seen.claims)
    pods = [p for p in seen.of_workload.get(workload, ()) if not p.released and not p.deleting]
    there = [p for p in pods if p.node in nodes]
    could = len(there)
    for pod in pods:
        if pod not in there and (node := snapshot.choose(_unconstrained(pod))) is not None:
            snapshot.place(replace(pod, node=None), node.name)
            could += 1
    return sum(pod.serving for pod in there), could


def _unconstrained(pod: Pod) -> Pod:
    return replace(pod, scheduling=without_spread_groups(pod.scheduling))
