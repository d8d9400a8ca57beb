"""Which pods of a ReplicaSet go first."""

from __future__ import annotations

from random import Random

from tests.differential.bench import Bench
from tests.differential.scenario import Scenario

FAMILY = "scale-in"
COUNT = 25


def scenario(seed: int) -> Scenario:
    """Return a set whose pods differ in cost, node and readiness, made smaller in steps."""
    chance = Random(f"{FAMILY} {seed}")
    bench = Bench(f"{FAMILY}-{seed:03}", FAMILY)
    # Nodes with room for a pod or two, so that who stands where is told by the room alone.
    rooms = [chance.choice([1, 1, 2, 3]) for _ in range(chance.randint(2, 4))]
    nodes = [bench.node(f"n{i}", pods=str(headroom)) for i, headroom in enumerate(rooms)]
    bench.settle()
    placed = sum(rooms)
    waiting = chance.choice([0, 0, 1, 2])
    kind = chance.choice(["Deployment", "ReplicaSet"])
    bench.create(bench.workload(kind, "web", placed + waiting))
    bench.settle()
    numbers = [i for i, headroom in enumerate(rooms) for _ in range(headroom)]
    for number in range(placed):
        pod = f"{{pod web {waiting + number}}}"
        bench.label("Pod", pod, mark=f"m{number:02}")
    bench.settle()
    for number in range(placed):
        if chance.random() < 0.5:
            bench.cost(
                f"{{pod web {waiting + number} }}", chance.choice([-100, -1, 1, 50, 2**31 - 1])
            )
    bench.settle()
    for number in range(placed):
        if chance.random() < 0.25:
            bench.unready(f"{{pod web @{nodes[numbers[number]]}}}")
            break
    bench.settle()
    left = placed + waiting
    while left > 0:
        left -= chance.randint(1, max(1, left))
        bench.scale(kind, "web", max(0, left))
        bench.settle()
        if chance.random() < 0.4:
            break
    return bench.done()
