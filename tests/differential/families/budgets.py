"""PodDisruptionBudgets, and every answer of the eviction API."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.bench import Bench
from tests.differential.scenario import Json, Scenario

FAMILY = "budgets"
COUNT = 40


def scenario(seed: int) -> Scenario:
    """Return workloads under budgets, evictions one by one, and pods that are ill or waiting."""
    chance = Random(f"{FAMILY} {seed}")
    bench = Bench(f"{FAMILY}-{seed:03}", FAMILY)
    bench.node("n0", pods=str(chance.choice([3, 20])))
    bench.node("n1", zone="b")
    kind = chance.choice(["Deployment", "Deployment", "ReplicaSet", "StatefulSet"])
    replicas = chance.randint(1, 5)
    # Pods of a set come again by the same name: a budget must have seen them go meanwhile.
    template = bench.template("web", stop="2s", never_ready=chance.random() < 0.2)
    more: dict[str, Any] = {}
    if kind == "StatefulSet":
        more["podManagementPolicy"] = "Parallel"
    bench.create(bench.workload(kind, "web", replicas, template, **more))
    bench.create(_budget(bench, chance, "first"))
    if chance.random() < 0.2:
        bench.create(_budget(bench, chance, "second"))
    bench.settle()
    for _ in range(chance.randint(2, 4)):
        replicas = _act(bench, chance, kind, replicas)
        bench.settle()
    return bench.done()


def _budget(bench: Bench, chance: Random, name: str) -> Json:
    rule: dict[str, Any] = chance.choice(
        [
            {"maxUnavailable": 0},
            {"maxUnavailable": 1},
            {"maxUnavailable": 2},
            {"maxUnavailable": "30%"},
            {"maxUnavailable": "100%"},
            {"minAvailable": 0},
            {"minAvailable": 1},
            {"minAvailable": 3},
            {"minAvailable": "50%"},
            {"minAvailable": "100%"},
        ]
    )
    if chance.random() < 0.4:
        rule["unhealthyPodEvictionPolicy"] = chance.choice(["AlwaysAllow", "IfHealthyBudget"])
    return bench.budget(name, chance.choice(["web", "web", "web", "other", None]), **rule)


def _act(bench: Bench, chance: Random, kind: str, replicas: int) -> int:
    pod = f"{{pod web {chance.randrange(replicas)}}}" if replicas else "nobody"
    match chance.randrange(8):
        case 0 | 1 | 2:
            bench.evict(pod)
        case 3:
            bench.evict(pod, dryRun=["All"])
        case 4:
            bench.evict(pod, preconditions={"uid": "another"})
        case 5 if replicas:
            bench.unready(pod)
            bench.settle()
            bench.evict(pod)
        case 6:
            replicas = chance.randint(1, 6)
            bench.scale(kind, "web", replicas)
        case _:
            spec = {"minAvailable": None, "maxUnavailable": chance.choice([1, "50%"])}
            bench.patch(bench.path("PodDisruptionBudget", "first"), {"spec": spec})
    return replicas
