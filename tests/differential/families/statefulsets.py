"""StatefulSets: who is made, updated and taken away, in which order, and what stops that."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.bench import Bench
from tests.differential.scenario import Scenario

FAMILY = "statefulsets"
COUNT = 30


def scenario(seed: int) -> Scenario:
    """Return one StatefulSet that is scaled, updated, evicted from and made ill."""
    chance = Random(f"{FAMILY} {seed}")
    bench = Bench(f"{FAMILY}-{seed:03}", FAMILY)
    for i in range(chance.randint(1, 3)):
        bench.node(f"n{i}", zone="abc"[i])
    spec: dict[str, Any] = {}
    if chance.random() < 0.35:
        spec["podManagementPolicy"] = "Parallel"
    match chance.randrange(5):
        case 0:
            spec["updateStrategy"] = {"type": "OnDelete"}
        case 1:
            rolling = {"partition": chance.randint(1, 3)}
            spec["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
        case _:
            pass
    if chance.random() < 0.2:
        spec["minReadySeconds"] = 1
    template = bench.template("db", stop=chance.choice(["0.4s", "0.4s", "1s"]))
    replicas = chance.randint(1, 4)
    bench.create(bench.workload("StatefulSet", "db", replicas, template, **spec))
    bench.settle()
    images = iter(["two", "three", "four", "five"])
    for _ in range(chance.randint(2, 4)):
        replicas = _act(bench, chance, next(images), replicas)
        bench.settle()
    return bench.done()


def _act(bench: Bench, chance: Random, image: str, replicas: int) -> int:
    match chance.randrange(6):
        case 0:
            replicas = chance.randint(0, 5)
            bench.scale("StatefulSet", "db", replicas)
        case 1:
            bench.roll("StatefulSet", "db", image)
        case 2 if replicas:
            bench.evict(f"db-{chance.randrange(replicas)}")
        case 3 if replicas:
            bench.delete("Pod", f"db-{chance.randrange(replicas)}", gracePeriodSeconds=0)
        case 4 if replicas:  # ill: the set waits for it, also when it gets smaller
            sick = f"db-{chance.randrange(replicas)}"
            bench.unready(sick)
            bench.settle()
            replicas = chance.randint(0, 5)
            bench.scale("StatefulSet", "db", replicas)
            bench.settle()
            bench.delete("Pod", sick)
        case _:
            rolling = {"partition": chance.randint(0, 2)}
            strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
            bench.roll("StatefulSet", "db", image, updateStrategy=strategy)
    return replicas
