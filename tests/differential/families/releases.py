"""Released pods: controlled by their Deployment in the place of their ReplicaSet, while they serve.

Every scenario has its pods on one node, which is cordoned when another joins. So the released pods
are those on the first node, and their replacements those on the second.
"""

from __future__ import annotations

from random import Random
from typing import Any

from plimsoll.domain.kubernetes import POD_TEMPLATE_HASH, RELEASED
from tests.differential.bench import HOST, ZONE, Bench
from tests.differential.scenario import Json, Scenario

FAMILY = "releases"
COUNT = 60


def scenario(seed: int) -> Scenario:
    """Return a Deployment of which pods are released, and what happens to both meanwhile."""
    chance = Random(f"{FAMILY} {seed}")
    bench = Bench(f"{FAMILY}-{seed:03}", FAMILY)
    first = bench.node("n0")
    bench.settle()
    replicas = chance.randint(1, 4)
    spec = _spec(chance)
    template = _template(bench, chance)
    bench.create(bench.deployment("web", replicas, template, **spec))
    if chance.random() < 0.7:
        bench.create(_budget(bench, chance, "first"))
    if chance.random() < 0.15:
        bench.create(_budget(bench, chance, "second"))
    autoscaled = chance.random() < 0.3
    if autoscaled:
        bench.create(_autoscaler(bench, chance, replicas))
    bench.settle()
    bench.node("n1", zone=chance.choice("ab"))
    bench.cordon(first)
    bench.settle()
    released = chance.randint(1, replicas)
    if replicas > 1 and spec["strategy"]["type"] != "Recreate" and chance.random() < 0.3:
        released = 1  # the rollout may have taken the others
        _stuck_rollout(bench)
        bench.settle(3)
    for number in range(released):
        _release(bench, f"{{pod web @{first} {number}}}")
        if number + 1 == released or _counts_by_hash(template):
            bench.settle(3)
    for _ in range(chance.randint(1, 3)):
        if not _act(bench, chance, first, autoscaled=autoscaled):
            break
        bench.settle(3)
    return bench.done()


def _counts_by_hash(template: Json) -> bool:
    """Whether a replacement's node hangs on how many pods were released before it was scheduled."""
    spread = template["spec"].get("topologySpreadConstraints", ())
    return any("matchLabelKeys" in constraint for constraint in spread)


def _stuck_rollout(bench: Bench) -> None:
    """Begin a rollout whose pods never become Ready, so that it stays under way."""
    template = {
        "metadata": {"annotations": {"drill.plimsoll.dev/never-ready": "true"}},
        "spec": {"containers": [{"name": "main", "image": "two"}]},
    }
    bench.strategic(bench.path("Deployment", "web"), {"spec": {"template": template}})


def _template(bench: Bench, chance: Random) -> Json:
    more: dict[str, Any] = {}
    match chance.randrange(5):
        case 0:
            more["affinity"] = {"podAntiAffinity": _apart(chance.choice([HOST, ZONE]))}
        case 1:
            more["topologySpreadConstraints"] = [_spread(chance)]
        case _:
            pass
    if chance.random() < 0.1:
        more["never_ready"] = True
    return bench.template("web", startup=chance.choice(["1s", "1s", "4s"]), **more)


def _apart(key: str) -> Json:
    # Preferred, so that all pods fit on the first node; what is required is in scheduling.py.
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "web"}}}
    weighted = {"weight": 100, "podAffinityTerm": term}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}


def _spread(chance: Random) -> Json:
    constraint: Json = {
        "maxSkew": 1,
        "topologyKey": HOST,
        "whenUnsatisfiable": chance.choice(["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    if chance.random() < 0.5:
        constraint["nodeTaintsPolicy"] = "Honor"
    if chance.random() < 0.5:
        constraint["matchLabelKeys"] = [POD_TEMPLATE_HASH]
    return constraint


def _spec(chance: Random) -> Json:
    strategy: Json = chance.choice(
        [
            {"type": "RollingUpdate"},
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            {"type": "Recreate"},
        ]
    )
    return {"strategy": strategy, "minReadySeconds": chance.choice([0, 0, 2])}


def _budget(bench: Bench, chance: Random, name: str) -> Json:
    rule: Json = chance.choice(
        [
            {"maxUnavailable": 0},
            {"maxUnavailable": 1},
            {"maxUnavailable": "34%"},
            {"minAvailable": 1},
            {"minAvailable": "50%"},
            {"minAvailable": "100%"},
        ]
    )
    return bench.budget(name, "web", **rule)


def _autoscaler(bench: Bench, chance: Random, replicas: int) -> Json:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    most = replicas + chance.choice([0, 2])
    spec = {"scaleTargetRef": target, "minReplicas": replicas, "maxReplicas": most}
    return bench.object("HorizontalPodAutoscaler", "web", spec=spec)


def _release(bench: Bench, pod: str) -> None:
    owner = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "web",
        "uid": "{uid deployments web}",
        "controller": True,
        "blockOwnerDeletion": False,
    }
    released = RELEASED.replace("/", "~1")
    bench.json_patch(
        bench.path("Pod", pod),
        {"op": "remove", "path": f"/metadata/labels/{POD_TEMPLATE_HASH}"},
        {"op": "add", "path": f"/metadata/annotations/{released}", "value": "i-1@noon"},
        {"op": "replace", "path": "/metadata/ownerReferences/0/controller", "value": False},
        {"op": "add", "path": "/metadata/ownerReferences/0", "value": owner},
    )


def _act(bench: Bench, chance: Random, first: str, *, autoscaled: bool) -> bool:
    """Do something, and return whether a pod may be left to act on."""
    path = bench.path("Deployment", "web")
    match chance.randrange(9):
        case 0 | 1 | 2:
            bench.evict("{pod web}")
        case 3:
            bench.roll("Deployment", "web", "three")
        case 4 if not autoscaled:
            replicas = chance.choice([0, 2, 5])
            bench.scale("Deployment", "web", replicas)
            return replicas > 0
        case 5:
            bench.patch(path, {"spec": {"paused": chance.random() < 0.7}})
        case 6:
            recreate = {"type": "Recreate", "rollingUpdate": None}
            bench.patch(path, {"spec": {"strategy": recreate}})
            bench.roll("Deployment", "web", "four")
            return False
        case 7:
            bench.cordon(first, on=False)
        case _:
            bench.delete("Deployment", "web", propagationPolicy="Background")
            return False
    return True
