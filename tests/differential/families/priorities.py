"""Priorities and preemption: who goes, so that who finds room."""

from __future__ import annotations

from random import Random

from tests.differential.bench import Bench
from tests.differential.scenario import Scenario

FAMILY = "priorities"
COUNT = 25


def scenario(seed: int) -> Scenario:
    """Return full nodes, and pods of higher priority that come later."""
    chance = Random(f"{FAMILY} {seed}")
    bench = Bench(f"{FAMILY}-{seed:03}", FAMILY)
    # Not below zero: those of other scenarios would always be scheduled before them.
    low = bench.priority("low", chance.choice([0, 1, 10]))
    middle = bench.priority("middle", 100)
    never = {"preemptionPolicy": "Never"} if chance.random() < 0.2 else {}
    high = bench.priority("high", 1000, **never)
    nodes = [bench.node(f"n{i}", cpu="2") for i in range(chance.randint(1, 3))]
    bench.settle()
    number = 0
    for node in nodes:  # bound to their nodes, so that both sides begin alike
        for _ in range(chance.randint(1, 3)):
            bench.create(
                bench.pod(
                    f"old-{number}",
                    app=chance.choice(["guarded", "plain"]),
                    cpu=chance.choice(["500m", "600m"]),
                    priorityClassName=chance.choice([low, low, middle]),
                    nodeSelector={"kubernetes.io/hostname": node},
                )
            )
            bench.settle()  # each starts a second after the other: the latest start goes first
            number += 1
    if chance.random() < 0.6:
        rule = chance.choice([{"maxUnavailable": 0}, {"minAvailable": 1}])
        bench.create(bench.budget("guarded", "guarded", **rule))
        bench.settle()
    for i in range(chance.randint(1, 2)):
        bench.create(
            bench.pod(
                f"new-{i}",
                cpu=chance.choice(["800m", "1500m", "1900m", "3"]),
                priorityClassName=chance.choice([high, high, middle]),
            )
        )
        bench.settle()
    return bench.done()
