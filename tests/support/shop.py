"""The shop that the page about placement shows: a cluster behind the command line."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from plimsoll.domain.placement import Layout, label_key
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from tests.support.builders import node_json, pod_spec_json
from tests.support.cli_environment import MemoryEnvironment, a_cluster
from tests.support.floors import spread_over

KEY = label_key(Layout(1, 2))


def a_deployment(name: str, replicas: int, floor: str | None, **spec: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "shop"}
    if floor is not None:
        metadata["annotations"] = {"plimsoll.dev/min-on-demand": floor}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": pod_spec_json(cpu="500m", **spec),
            },
        },
    }


def a_shop() -> MemoryEnvironment:
    """Return a cluster with two spot families, whose nodes placement has labelled."""
    found = MemoryEnvironment()
    early = found.clock.now() - timedelta(minutes=10)
    cluster = FakeCluster(now=early)
    groups = {"od": "on-demand", "c5": "spot-1", "m5": "spot-2"}
    for family, group in groups.items():
        for n in range(2):
            node = node_json(
                f"{family}-{n}",
                capacity="on-demand" if family == "od" else "spot",
                labels={"node.kubernetes.io/instance-type": f"{family}.large", KEY: group},
            )
            del node["status"]["conditions"]  # the cluster's own to say
            cluster.join(node, now=early)
    shop = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    cluster.apply(
        [
            shop,
            a_deployment("web", 9, "30%", **spread_over(2)),
            a_deployment("cart", 4, "1"),
            a_deployment("search", 6, None),
        ],
        now=early,
    )
    cluster.step(found.clock.now())
    found.transports["harbor"] = FakeTransport(cluster, found.clock)
    found.registry.add(a_cluster())
    return found
