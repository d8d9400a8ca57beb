"""HorizontalPodAutoscalers without metrics: what they raise, and what they never take back."""

from __future__ import annotations

from random import Random

from tests.differential.bench import Bench
from tests.differential.scenario import Json, Scenario

FAMILY = "autoscalers"
COUNT = 8


def scenario(seed: int) -> Scenario:
    """Return a workload under an autoscaler whose bounds and whose count change."""
    chance = Random(f"{FAMILY} {seed}")
    bench = Bench(f"{FAMILY}-{seed:03}", FAMILY)
    bench.node("n0")
    kind = chance.choice(["Deployment", "StatefulSet"])
    more: Json = {"podManagementPolicy": "Parallel"} if kind == "StatefulSet" else {}
    bench.create(bench.workload(kind, "web", chance.randint(1, 5), **more))
    least, most = chance.randint(1, 3), chance.randint(3, 5)
    missing = {"metric": {"name": "none"}, "target": {"type": "Value", "value": "1"}}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": "web"},
        "minReplicas": least,
        "maxReplicas": most,
        "metrics": [{"type": "External", "external": missing}],
    }
    bench.create(bench.object("HorizontalPodAutoscaler", "web", spec=spec))
    bench.settle(17)
    path = bench.path("HorizontalPodAutoscaler", "web")
    for _ in range(2):
        match chance.randrange(3):
            case 0:
                bench.patch(path, {"spec": {"minReplicas": chance.randint(1, most)}})
            case 1:
                bench.scale(kind, "web", chance.randint(0, 7))
            case _:
                most = chance.randint(most, 6)
                bench.patch(path, {"spec": {"minReplicas": 1, "maxReplicas": most}})
        bench.settle(17)
    return bench.done()
