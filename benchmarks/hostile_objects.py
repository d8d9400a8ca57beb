"""What hostile objects cost: thousands drawn at random, and the worst that an API server takes.

    python -m benchmarks.hostile_objects --count 20000 --seed 1

Of each, one observation and three plans are made (early, in the middle, at the eviction deadline) with the
object in the cluster, and two runs of placement in another, and the plans for all others are held against those without it. Printed are the
crashes, the plans that changed, and the processor time that the slowest cost more than their absence:
the drawn ones in a small cluster, the crafted ones in one of 50 nodes and 500 pods.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from random import Random

from plimsoll.domain.observation import Observation
from tests.support.builders import deployment_json, node_json, pod_json
from tests.support.cli_environment import StillClock
from tests.support.hostile import (
    SHOP,
    HostileTenant,
    Json,
    crafted,
    mutated,
    of_shop,
    of_spread_shop,
    placement_of_others,
    plans_of_others,
)

LIMIT_MS = 50
TRIES = 5
"""How often a slow one is measured: the least counts, for others use the processor too."""


class Count:
    """What was found so far."""

    def __init__(
        self,
        cluster: HostileTenant,
        planned: Callable[[Observation], list[object]] = plans_of_others,
    ) -> None:
        self._cluster = cluster
        self._planned = planned
        self._alone: dict[object, tuple[float, list[object]]] = {}
        self.crashed: list[str] = []
        self.changed: list[str] = []
        self.slowest: list[tuple[float, str]] = []

    def play(self, name: str, kind: str, obj: Json) -> None:
        """Play one object."""
        self._cluster.write(kind, obj)
        try:
            spent, found = self._look()
        except Exception as error:  # noqa: BLE001 - crashes are what is counted
            self.crashed.append(f"{name}: {type(error).__name__}: {error}")
            return
        self._cluster.without(kind, obj)
        left = kind, tuple(o["metadata"]["uid"] for o in self._cluster.server.items[kind])
        if left not in self._alone:
            self._alone[left] = min((self._look() for _ in range(TRIES)), key=lambda look: look[0])
        base, expected = self._alone[left]
        if found != expected:
            self.changed.append(name)
        for _ in range(TRIES if spent - base > LIMIT_MS / 2 else 0):
            self._cluster.write(kind, obj)
            spent = min(spent, self._look()[0])
        self.slowest = sorted([*self.slowest, (spent - base, name)], reverse=True)[:5]

    def _look(self) -> tuple[float, list[object]]:
        began = time.process_time()
        found = self._planned(self._cluster.api.observe())
        return (time.process_time() - began) * 1000, found


def large() -> dict[str, list[Json]]:
    """Return the shop with 50 nodes and 500 pods."""
    kinds = of_shop()
    kinds["Node"] += [node_json(f"node-{n}", cpu="64", memory="256Gi") for n in range(47)]
    for n in range(49):
        name = f"app-{n}"
        kinds["Deployment"].append(deployment_json(name, namespace=SHOP, replicas=10))
        kinds["Pod"] += [
            pod_json(
                f"{name}-{m}",
                namespace=SHOP,
                node="spot" if not m and n % 2 else f"node-{(n + m) % 47}",
                labels={"app": name},
                owner=("ReplicaSet", f"{name}-abc"),
            )
            for m in range(10)
        ]
    return kinds


def say(title: str, count: Count, played: int) -> None:
    """Print what was found."""
    print(
        f"{title}: {played} played, {len(count.crashed)} crashed, {len(count.changed)} changed plans"
    )
    for words in (*count.crashed[:20], *count.changed[:20]):
        print(f"  {words[:200]}")
    for spent, name in count.slowest:
        print(f"  {spent:6.1f} ms  {name}")


def main() -> int:
    """Play them all; fail where one crashed, changed a plan or cost too much."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    drawn = Count(HostileTenant(StillClock()))
    placed = Count(HostileTenant(StillClock(), of_spread_shop()), placement_of_others)
    for number in range(asked.count):
        for count in (drawn, placed):
            kind, obj = mutated(Random(f"{asked.seed}/{number}"))
            count.play(f"{kind} {asked.seed}/{number}", kind, obj)
    say("drawn, drains", drawn, asked.count)
    say("drawn, placement", placed, asked.count)
    worst = Count(HostileTenant(StillClock(), large()))
    made = crafted()
    for name, (kind, obj) in made.items():
        worst.play(name, kind, obj)
    say("crafted", worst, len(made))
    return int(any(_bad(count) for count in (drawn, placed, worst)))


def _bad(count: Count) -> bool:
    return bool(count.crashed or count.changed) or _most(count.slowest) > LIMIT_MS


def _most(slowest: Iterable[tuple[float, str]]) -> float:
    return max((spent for spent, _ in slowest), default=0.0)


if __name__ == "__main__":
    raise SystemExit(main())
