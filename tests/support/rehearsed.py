"""A cluster of a little of everything, as a rehearsal reads it; its page shows what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from plimsoll.domain.kubernetes import Resources
from plimsoll.domain.node_groups import NodeGroup, NodeTemplate
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from tests.support.builders import node_json, pod_spec_json
from tests.support.cli_environment import Counting, MemoryEnvironment, a_cluster

type Json = dict[str, Any]

TYPE = "node.kubernetes.io/instance-type"


def an_object(kind: str, name: str, spec: Mapping[str, Any], **metadata: Any) -> Json:
    version = {"PodDisruptionBudget": "policy/v1", "Pod": "v1", "PersistentVolumeClaim": "v1"}
    return {
        "apiVersion": version.get(kind, "apps/v1"),
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop", **metadata},
        "spec": dict(spec),
    }


def a_workload(kind: str, name: str, replicas: int, *, pod: Mapping[str, Any], **spec: Any) -> Json:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod_spec_json(**{"cpu": "1", **pod})}
    body = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **spec}
    return an_object(kind, name, body)


OBJECTS = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
    a_workload("Deployment", "web", 6, pod={}),
    a_workload("Deployment", "ledger", 1, pod={}, strategy={"type": "Recreate"}),
    a_workload(
        "StatefulSet",
        "db",
        1,
        pod={},
        serviceName="db",
        volumeClaimTemplates=[
            {
                "metadata": {"name": "data"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            }
        ],
    ),
    an_object(
        "PodDisruptionBudget",
        "ledger",
        {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "ledger"}}},
    ),
    an_object("Pod", "report", pod_spec_json(cpu="500m"), labels={"app": "report"}),
]


def a_mixed_cluster(
    *, on_demand: int = 1, growing: bool = True, objects: list[Json] | None = None
) -> MemoryEnvironment:
    """Return an environment with the cluster `harbor`: spot nodes in two zones, and few others.

    Args:
        on_demand: how many on-demand nodes there are.
        growing: whether a node group may grow.
        objects: what stands in it.
    """
    found = MemoryEnvironment()
    early = found.clock.now() - timedelta(minutes=10)
    cluster = FakeCluster(now=early)
    for n in range(3):
        zone, family = (("us-east-1a", "m5"), ("us-east-1b", "m5"), ("us-east-1b", "c5"))[n]
        node = node_json(
            f"spot-{n}", capacity="spot", cpu="4", zone=zone, labels={TYPE: f"{family}.xlarge"}
        )
        del node["status"]["conditions"]  # the cluster's own to say
        cluster.join(node, now=early)
    cluster.apply(OBJECTS if objects is None else objects, now=early)
    cluster.step(early + timedelta(minutes=2))
    for n in range(on_demand):  # they come later: nothing stands on them
        node = node_json(f"od-{n}", cpu="4", zone="us-east-1b", labels={TYPE: "m6i.xlarge"})
        del node["status"]["conditions"]
        cluster.join(node, now=early + timedelta(minutes=2))
    cluster.step(found.clock.now())
    found.transports["harbor"] = Counting(FakeTransport(cluster, found.clock))
    found.registry.add(a_cluster())
    if growing:
        found.groups = [
            NodeGroup(
                kind="asg",
                name="Base_OnDemand",
                capacity="on-demand",
                zones=("us-east-1a", "us-east-1b"),
                desired=on_demand,
                min_size=0,
                max_size=on_demand + 4,
                instance_types=("m6i.xlarge",),
                template=NodeTemplate(
                    labels={}, allocatable=Resources(cpu=4000, memory=32 * 2**30, pods=58)
                ),
            )
        ]
    return found
