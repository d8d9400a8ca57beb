"""DaemonSets: on which nodes, and how they are rolled out."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.bench import Bench
from tests.differential.scenario import Json, Scenario

FAMILY = "daemonsets"
COUNT = 15


def scenario(seed: int) -> Scenario:
    """Return a DaemonSet on nodes that come, are cordoned, tainted and relabelled."""
    chance = Random(f"{FAMILY} {seed}")
    bench = Bench(f"{FAMILY}-{seed:03}", FAMILY)
    nodes = []
    for i in range(chance.randint(2, 4)):
        taints: list[Json] = []
        if chance.random() < 0.3:
            taints = [
                {
                    "key": "pool",
                    "value": "spot",
                    "effect": chance.choice(["NoSchedule", "NoExecute"]),
                }
            ]
        labels = {"disk": chance.choice(["ssd", "hdd"])}
        nodes.append(bench.node(f"n{i}", labels=labels, taints=taints))
    spec: dict[str, Any] = {}
    if chance.random() < 0.4:
        spec["tolerations"] = [{"key": "pool", "operator": "Exists"}]
    if chance.random() < 0.3:
        spec["nodeSelector"] = {"disk": "ssd"}
    more: dict[str, Any] = {}
    if chance.random() < 0.5:
        rolling = {"maxUnavailable": chance.choice([1, 2, "50%"])}
        more["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
    elif chance.random() < 0.3:
        more["updateStrategy"] = {"type": "OnDelete"}
    bench.create(
        bench.workload("DaemonSet", "agent", None, bench.template("agent", **spec), **more)
    )
    bench.settle()
    for image in ["two", "three", "four"][: chance.randint(2, 3)]:
        _act(bench, chance, image, nodes)
        bench.settle()
    return bench.done()


def _act(bench: Bench, chance: Random, image: str, nodes: list[str]) -> None:
    node = chance.choice(nodes)
    match chance.randrange(6):
        case 0:
            bench.cordon(node)
        case 1:
            bench.taint(node, f"pool=spot:{chance.choice(['NoSchedule', 'NoExecute'])}")
        case 2:
            bench.label("Node", node, disk=chance.choice(["ssd", "hdd"]))
        case 3:
            nodes.append(bench.node(f"late-{image}", labels={"disk": "ssd"}))
        case 4:
            bench.taint(node)
        case _:
            bench.roll("DaemonSet", "agent", image)
