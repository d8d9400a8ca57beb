"""Jobs: pods until enough have succeeded, or too many have failed."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.bench import Bench
from tests.differential.scenario import Scenario

FAMILY = "jobs"
COUNT = 15


def scenario(seed: int) -> Scenario:
    """Return a Job that runs to its end, or whose pods are evicted on the way."""
    chance = Random(f"{FAMILY} {seed}")
    bench = Bench(f"{FAMILY}-{seed:03}", FAMILY)
    bench.node("n0")
    spec: dict[str, Any] = {"backoffLimit": chance.choice([0, 1, 6])}
    if chance.random() < 0.8:
        spec["completions"] = chance.randint(1, 4)
    if chance.random() < 0.7:
        spec["parallelism"] = chance.randint(1, 3)
    short = chance.random() < 0.5
    policy = chance.choice(["Never", "OnFailure"])
    run = {"run": "0.5s" if short else "3000s", "restartPolicy": policy}
    if chance.random() < 0.3:
        spec["suspend"] = True
    bench.create(bench.job("work", bench.template("work", **run), **spec))
    bench.settle()
    if spec.get("suspend"):
        bench.patch(bench.path("Job", "work"), {"spec": {"suspend": False}})
        bench.settle()
    if not short:
        match chance.randrange(4):
            case 0:
                bench.evict("{pod work 0}")
                bench.settle(11)  # a failure is followed by a wait of ten seconds
            case 1:
                bench.patch(bench.path("Job", "work"), {"spec": {"parallelism": 0}})
                bench.settle()
            case 2:
                bench.patch(bench.path("Job", "work"), {"spec": {"suspend": True}})
                bench.settle()
            case _:
                bench.patch(bench.path("Job", "work"), {"spec": {"parallelism": 3}})
                bench.settle()
    return bench.done()
