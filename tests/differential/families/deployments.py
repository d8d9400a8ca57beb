"""Rollouts of Deployments: how many at a time, and what changes on the way."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.bench import Bench
from tests.differential.scenario import Scenario

FAMILY = "deployments"
COUNT = 30


def scenario(seed: int) -> Scenario:
    """Return one Deployment that is rolled out, scaled, paused and evicted from."""
    chance = Random(f"{FAMILY} {seed}")
    bench = Bench(f"{FAMILY}-{seed:03}", FAMILY)
    for i in range(chance.randint(1, 3)):
        bench.node(f"n{i}", zone="abc"[i])
    replicas = chance.randint(1, 8)
    spec: dict[str, Any] = {"strategy": _strategy(chance)}
    if chance.random() < 0.25:
        spec["minReadySeconds"] = 1
    if chance.random() < 0.25:
        spec["revisionHistoryLimit"] = chance.randint(0, 2)
    bench.create(bench.deployment("web", replicas, **spec))
    bench.settle()
    images = iter(["two", "three", "four", "five", "six"])
    for _ in range(chance.randint(2, 4)):
        _act(bench, chance, next(images), replicas)
        bench.settle()
    return bench.done()


def _strategy(chance: Random) -> dict[str, Any]:
    if chance.random() < 0.15:
        return {"type": "Recreate"}
    surge, unavailable = chance.choice(
        [(1, 0), (0, 1), (1, 1), (2, 1), ("25%", "25%"), ("100%", 0), (0, "50%"), ("30%", "40%")]
    )
    return {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
    }


def _act(bench: Bench, chance: Random, image: str, replicas: int) -> None:
    path = bench.path("Deployment", "web")
    match chance.randrange(8):
        case 0 | 1:
            bench.roll("Deployment", "web", image)
        case 2:
            bench.scale("Deployment", "web", chance.randint(0, 9))
        case 3:  # a rollout that hangs: the new pods fit nowhere
            bench.strategic(
                path,
                {
                    "spec": {
                        "template": {
                            "spec": {
                                "containers": [
                                    {
                                        "name": "main",
                                        "image": image,
                                        "resources": {"requests": {"cpu": "64"}},
                                    }
                                ]
                            }
                        }
                    }
                },
            )
            bench.settle()
            bench.scale("Deployment", "web", chance.randint(replicas, 12))
            bench.settle()
            bench.strategic(
                path,
                {
                    "spec": {
                        "template": {
                            "spec": {
                                "containers": [
                                    {"name": "main", "resources": {"requests": {"cpu": "100m"}}}
                                ]
                            }
                        }
                    }
                },
            )
        case 4:
            bench.patch(path, {"spec": {"paused": True}})
            bench.roll("Deployment", "web", image)
            bench.settle()
            bench.scale("Deployment", "web", chance.randint(1, 9))
            bench.settle()
            bench.patch(path, {"spec": {"paused": False}})
        case 5:
            bench.roll("Deployment", "web", image, replicas=chance.randint(1, 8))
        case 6:  # back to what it was
            bench.roll("Deployment", "web", "one")
        case _:
            annotations = {"kubectl.kubernetes.io/restartedAt": image}
            bench.patch(path, {"spec": {"template": {"metadata": {"annotations": annotations}}}})
