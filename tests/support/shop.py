"""The shop that the page about placement shows: a cluster behind the command line."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from plimsoll.domain.placement import SPOT, Layout, label_key
from plimsoll.domain.spot import CapacityPool, HeldPool
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
    return _standing(
        ("od", "c5", "m5"),
        KEY,
        a_deployment("web", 9, "30%", **spread_over(2)),
        a_deployment("cart", 4, "1"),
        a_deployment("search", 6, None),
    )


def a_promised_shop() -> MemoryEnvironment:
    """Return a cluster with three spot families, one of them reclaimed lately, and a slow Deployment that promises."""
    layout = Layout(1, 3)
    web = a_deployment("web", 10, None, **spread_over(layout))
    web["metadata"]["annotations"] = {"plimsoll.dev/keep-ready": "60%"}
    timing = {"drill.plimsoll.dev/startup": "170s", "plimsoll.dev/stop-seconds": "10"}
    web["spec"]["template"]["metadata"]["annotations"] = timing
    found = _standing(("od", "c6i", "m6i", "r6i"), label_key(layout), web, cpu="2")
    now = found.clock.now()
    for family, hours in (("c6i", 240.0), ("m6i", 36.0), ("r6i", 2.0)):
        held = HeldPool(
            pool=CapacityPool(f"{family}.large", "us-east-1a", SPOT),
            since=now - timedelta(hours=hours),
            hours=hours,
            at=now,
        )
        found.pools.count("us-east-1", None, held)
    return found


def _standing(
    families: Sequence[str], key: str, *objects: dict[str, Any], cpu: str = "8"
) -> MemoryEnvironment:
    """Return a cluster with two nodes of each family, labelled as groups in this order, in which objects stand."""
    found = MemoryEnvironment()
    early = found.clock.now() - timedelta(minutes=10)
    cluster = FakeCluster(now=early)
    for number, family in enumerate(families):
        for n in range(2):
            node = node_json(
                f"{family}-{n}",
                cpu=cpu,
                capacity="spot" if number else "on-demand",
                labels={
                    "node.kubernetes.io/instance-type": f"{family}.large",
                    key: f"spot-{number}" if number else "on-demand",
                },
            )
            del node["status"]["conditions"]  # the cluster's own to say
            cluster.join(node, now=early)
    shop = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    cluster.apply([shop, *objects], now=early)
    cluster.step(found.clock.now())
    found.transports["harbor"] = FakeTransport(cluster, found.clock)
    found.registry.add(a_cluster())
    return found
