"""An interruption of many nodes with ten pods each, as one observation."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from plimsoll.domain.kubernetes import Pod, Ref
from plimsoll.domain.observation import Observation
from tests.support.builders import a_deployment, a_node, a_pod
from tests.support.observations import interrupted, looked, released

PODS = 10
"""On each node, and of each workload."""


@cache
def _untouched(nodes: int) -> Observation:
    pods = [
        a_pod(
            f"app-{n}-{turn}",
            node=f"spot-{(n + turn * 7) % nodes:03}",
            labels={"app": f"app-{n}", "pod-template-hash": "abc"},
            owner=("ReplicaSet", f"app-{n}-abc"),
        )
        for n in range(nodes)
        for turn in range(PODS)
    ]
    return looked(
        [
            *(interrupted(f"spot-{n:03}") for n in range(nodes)),
            a_node("od", cpu="9000", memory="900Gi", pods=9000),
        ],
        pods,
        [a_deployment(f"app-{n}", replicas=PODS) for n in range(nodes)],
    )


def storm(nodes: int, change: dict[str, Pod] | None = None) -> Observation:
    """Return so many interrupted nodes with ten pods each; each workload stands on ten of the nodes.

    `change` puts other pods in the place of those of their names.
    """
    seen = _untouched(nodes)
    if change is None:
        return seen
    return replace(seen, pods=[change.get(pod.name, pod) for pod in seen.pods])


def gone(pod: Pod) -> Pod:
    """Return a pod as it is after its release."""
    name = pod.owner.name.removesuffix("-abc") if pod.owner else ""
    return released(pod, owner=Ref("Deployment", pod.namespace, name))
