"""Nodes: cordons, taints and conditions, and what becomes of pods on nodes that are deleted."""

from __future__ import annotations

from random import Random

from tests.differential.bench import Bench
from tests.differential.scenario import MERGE, STRATEGIC, Scenario

FAMILY = "nodes"
COUNT = 15


def scenario(seed: int) -> Scenario:
    """Return nodes with pods of every kind, cordoned, tainted and back."""
    chance = Random(f"{FAMILY} {seed}")
    bench = Bench(f"{FAMILY}-{seed:03}", FAMILY)
    nodes = [bench.node(f"n{i}", zone="abc"[i]) for i in range(3)]
    bench.settle()
    tolerating = [{"key": "spot", "operator": "Exists"}]
    bench.create(
        bench.deployment("web", 3),
        bench.deployment("hardy", 2, bench.template("hardy", tolerations=tolerating)),
        bench.workload("DaemonSet", "agent", None),
    )
    bench.settle()
    for _ in range(chance.randint(2, 4)):
        _act(bench, chance, chance.choice(nodes))
        bench.settle()
    return bench.done()


def _act(bench: Bench, chance: Random, node: str) -> None:
    path = bench.path("Node", node)
    taint = {"key": "spot", "value": "doomed", "effect": "NoSchedule"}
    match chance.randrange(7):
        case 0:
            bench.cordon(node)
        case 1:
            bench.cordon(node, on=False)
        case 2:  # a list in a merge patch and in a strategic one: both replace all taints
            kind = chance.choice([MERGE, STRATEGIC])
            bench.patch(path, {"spec": {"taints": [taint]}}, kind, show=("spec.taints.*.key",))
        case 3:
            bench.patch(path, {"spec": {"unschedulable": True, "taints": [taint]}}, STRATEGIC)
        case 4:
            condition = chance.choice(["MemoryPressure", "DiskPressure", "PIDPressure"])
            status = chance.choice(["True", "True", "False"])
            conditions = [{"type": condition, "status": status}]
            bench.strategic(f"{path}/status", {"status": {"conditions": conditions}})
        case 5:
            operation = {"op": "add", "path": "/spec/taints", "value": [taint]}
            bench.json_patch(path, operation)
        case _:
            bench.scale("Deployment", "web", chance.randint(2, 8))
