"""Where pods may be: resources, selectors, taints, affinity, spread, in any mixture."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.bench import HOST, ZONE, Bench
from tests.differential.scenario import Json, Scenario

FAMILY = "scheduling"
COUNT = 70
_EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")


def scenario(seed: int) -> Scenario:
    """Return one cluster with a few workloads of random demands, then nodes that change."""
    chance = Random(f"{FAMILY} {seed}")
    bench = Bench(f"{FAMILY}-{seed:03}", FAMILY)
    rack = f"rack-{bench.name}"
    nodes = _nodes(bench, chance, rack)
    bench.settle()
    apps = ["red", "green", "blue"][: chance.randint(1, 3)]
    for app in apps:
        template = _template(bench, chance, app, apps, rack, nodes)
        bench.create(bench.deployment(app, chance.randint(1, 6), template))
        bench.settle()  # two at once would race for room
    for _ in range(chance.randint(1, 2)):
        _change(bench, chance, nodes, apps, rack)
        bench.settle()
    return bench.done()


def _nodes(bench: Bench, chance: Random, rack: str) -> list[str]:
    nodes = []
    for number in range(chance.randint(2, 6)):
        labels = {"disk": chance.choice(["ssd", "hdd"]), "gen": str(chance.randint(1, 9))}
        if chance.random() < 0.8:
            labels[rack] = chance.choice("xyz")
        name = bench.node(
            f"n{number}",
            zone=chance.choice("abc"),
            cpu=chance.choice(["1", "2", "4"]),
            pods=chance.choice(["2", "4", "20"]),
            labels=labels,
            taints=_taints(chance),
        )
        nodes.append(name)
    return nodes


def _taints(chance: Random) -> list[Json]:
    if chance.random() < 0.6:
        return []
    return [
        {
            "key": "pool",
            "value": chance.choice(["spot", "batch"]),
            "effect": chance.choice(_EFFECTS),
        }
    ]


def _template(  # noqa: PLR0913, PLR0917 - what demands can be about
    bench: Bench, chance: Random, app: str, apps: list[str], rack: str, nodes: list[str]
) -> Json:
    spec: dict[str, Any] = {}
    affinity: dict[str, Any] = {}
    if chance.random() < 0.3:
        spec["nodeSelector"] = {"disk": chance.choice(["ssd", "hdd"])}
    if chance.random() < 0.4:
        spec["tolerations"] = [_toleration(chance)]
    if chance.random() < 0.3:
        affinity["nodeAffinity"] = _required({"nodeSelectorTerms": _node_terms(chance, nodes)})
    if chance.random() < 0.25:
        affinity["podAffinity"] = _required([_pod_term(chance, apps, rack)])
    if chance.random() < 0.35:
        affinity["podAntiAffinity"] = _required([_pod_term(chance, apps, rack)])
    if affinity:
        spec["affinity"] = affinity
    if chance.random() < 0.5:
        spec["topologySpreadConstraints"] = [
            _spread(chance, app, key)
            for key in chance.sample([ZONE, HOST, rack], chance.choice([1, 1, 2]))
        ]
    if chance.random() < 0.1:
        spec["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    return bench.template(
        app, cpu=chance.choice(["100m", "300m", "700m", "1500m"]), labels={"tier": app[0]}, **spec
    )


def _required(what: Any) -> Json:
    return {"requiredDuringSchedulingIgnoredDuringExecution": what}


def _toleration(chance: Random) -> Json:
    shape: Json = chance.choice(
        [
            {"key": "pool", "operator": "Equal", "value": "spot"},
            {"key": "pool", "operator": "Exists"},
            {"key": "pool", "value": "batch", "effect": "NoSchedule"},
            {"operator": "Exists"},
            {"operator": "Exists", "effect": "NoExecute"},
        ]
    )
    return shape


def _node_terms(chance: Random, nodes: list[str]) -> list[Json]:
    return [_node_term(chance, nodes) for _ in range(chance.choice([1, 1, 2]))]


def _node_term(chance: Random, nodes: list[str]) -> Json:
    term: Json = chance.choice(
        [
            {"key": "disk", "operator": "In", "values": ["ssd"]},
            {"key": "disk", "operator": "NotIn", "values": ["ssd"]},
            {"key": "gen", "operator": "Gt", "values": [str(chance.randint(2, 6))]},
            {"key": "gen", "operator": "Lt", "values": [str(chance.randint(4, 8))]},
            {"key": ZONE, "operator": "Exists"},
            {"key": "missing", "operator": "DoesNotExist"},
            {"key": "missing", "operator": "NotIn", "values": ["any"]},
            {"key": ZONE, "operator": "In", "values": ["zone-a", "zone-b"]},
        ]
    )
    if chance.random() < 0.15:
        field = {"key": "metadata.name", "operator": "NotIn", "values": [chance.choice(nodes)]}
        return {"matchExpressions": [term], "matchFields": [field]}
    return {"matchExpressions": [term]}


def _pod_term(chance: Random, apps: list[str], rack: str) -> Json:
    selector: Json = chance.choice(
        [
            {"matchLabels": {"app": chance.choice(apps)}},
            {"matchExpressions": [{"key": "app", "operator": "In", "values": apps[:2]}]},
            {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": apps[:1]}]},
            {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
        ]
    )
    return {"labelSelector": selector, "topologyKey": chance.choice([HOST, ZONE, rack])}


def _spread(chance: Random, app: str, key: str) -> Json:
    constraint: Json = {
        "maxSkew": chance.choice([1, 1, 2]),
        "topologyKey": key,
        "whenUnsatisfiable": chance.choice(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": {"matchLabels": {"app": app}},
    }
    if constraint["whenUnsatisfiable"] == "DoNotSchedule" and chance.random() < 0.3:
        constraint["minDomains"] = chance.randint(1, 4)
    if chance.random() < 0.3:
        constraint["matchLabelKeys"] = ["pod-template-hash"]
    if chance.random() < 0.3:
        constraint["nodeTaintsPolicy"] = chance.choice(["Honor", "Ignore"])
    if chance.random() < 0.3 and key.startswith("rack-"):
        # By a key of its own: with Ignore the nodes of other scenarios would be counted too.
        constraint["nodeAffinityPolicy"] = chance.choice(["Honor", "Ignore"])
    return constraint


def _change(bench: Bench, chance: Random, nodes: list[str], apps: list[str], rack: str) -> None:
    node, app = chance.choice(nodes), chance.choice(apps)
    match chance.randrange(6):
        case 0:
            bench.cordon(node)
            bench.scale("Deployment", app, chance.randint(4, 8))
        case 1:
            bench.node(
                f"late-{chance.randrange(1000)}", zone=chance.choice("abc"), labels={rack: "y"}
            )
        case 2:
            bench.taint(node)
        case 3:
            bench.scale("Deployment", app, chance.randint(5, 9))
        case 4:
            bench.label("Node", node, disk=chance.choice(["ssd", "hdd"]))
        case _:
            bench.roll("Deployment", app, "two")
