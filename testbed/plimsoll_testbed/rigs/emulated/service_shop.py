"""The shop as a cluster of the optimisation service: a fake cluster with one spot node too many."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from plimsoll.domain.kubernetes import KUBE_SYSTEM, NAMESPACE
from plimsoll_simulation.fake_aws.machines import Machine, instance_id, node_object
from plimsoll_simulation.fake_aws.nodegroups import NodeGroupSpec
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_simulation.scenario.drill import Drill

AGE: Final = timedelta(hours=1)
"""How long the shop has stood: the service leaves nodes alone that have only just joined."""
QUICK: Final = Settings(pod_startup=timedelta(seconds=2), pod_stop=timedelta(seconds=1))


def surplus_shop(drill: Drill, now: datetime) -> FakeCluster:
    """Return the cluster of a drill as it stands some time after a busy hour.

    A node came then for the pods of one more workload. They need little now, and the other nodes
    have room for them.

    Args:
        drill: has one cluster.
        now: the time until which it has stood.
    """
    (spec,) = drill.scenario.clusters
    began, seed = now - AGE, drill.scenario.seed
    cluster = FakeCluster(now=began, seed=seed, settings=QUICK)

    def join(group: NodeGroupSpec, number: int, at: datetime) -> None:
        machine = Machine(
            id=instance_id(seed, spec.name, group.name, number),
            cluster=spec.name,
            group=group,
            number=number,
            zone=group.zones[number % len(group.zones)],
            launched=at,
            ready=at,
        )
        cluster.join(node_object(machine), now=at)

    for group in spec.node_groups:
        for number in range(1, group.size + 1):
            join(group, number, began)
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in (KUBE_SYSTEM, NAMESPACE)
    ]
    cluster.apply([*namespaces, *(each.body for each in drill.objects[spec.name])], now=began)
    busy = now - AGE / 2
    cluster.step(busy)
    grown = next(group for group in spec.node_groups if group.capacity == "spot")
    join(grown, grown.size + 1, busy)
    cluster.apply([_campaign()], now=busy)
    cluster.step(now)
    return cluster


def _campaign() -> dict[str, Any]:
    labels = {"app": "campaign"}
    requests = {"cpu": "500m", "memory": "512Mi"}
    container = {"name": "campaign", "image": "registry.example.com/campaign:3"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "campaign", "namespace": "shop"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{**container, "resources": {"requests": requests}}]},
            },
        },
    }
