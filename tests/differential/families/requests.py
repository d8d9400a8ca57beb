"""The API itself: lists and selectors, patches of each kind, versions, preconditions, refusals."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.bench import Bench
from tests.differential.scenario import JSON_PATCH, MERGE, STRATEGIC, Json, Scenario

FAMILY = "requests"
COUNT = 50
_SHOW = ("metadata.labels", "metadata.annotations", "spec.template.spec", "spec.replicas")


def scenario(seed: int) -> Scenario:
    """Return a handful of objects and a dozen requests on them."""
    chance = Random(f"{FAMILY} {seed}")
    bench = Bench(f"{FAMILY}-{seed:03}", FAMILY)
    node = bench.node("n0", labels={"disk": "ssd"})
    bench.node("n1", labels={"disk": "hdd"}, unschedulable=True)
    for i in range(chance.randint(2, 4)):
        labels = {"tier": chance.choice("abc"), **({"odd": "yes"} if i % 2 else {})}
        bench.create(bench.pod(f"pod-{i}", labels=labels))
    bench.create(bench.deployment("web", 2))
    bench.settle()
    for _ in range(4):
        for _ in range(3):
            chance.choice([_list, _list, _patch, _patch, _delete, _put, _create])(
                bench, chance, node
            )
        bench.settle()
    return bench.done()


def _list(bench: Bench, chance: Random, node: str) -> None:
    labels = chance.choice(
        [
            "",
            "app",
            "!odd",
            "tier=a",
            "tier==b",
            "tier!=a",
            "tier in (a, b)",
            "tier notin (c),app",
            "odd=yes,tier in (a,b,c)",
            "tier in (",
            "=a",
            "tier=a,,tier=b",
        ]
    )
    fields = chance.choice(
        [
            "",
            f"spec.nodeName={node}",
            f"spec.nodeName!={node}",
            "status.phase=Running",
            "status.phase!=Running,metadata.name!=pod-0",
            "metadata.name=pod-0",
            "spec.restartPolicy=Always",
            "spec.unschedulable=true",
            "nothing=1",
        ]
    )
    query = {"labelSelector": labels, "fieldSelector": fields}
    kind = chance.choice(["Pod", "Pod", "Deployment"])
    if kind == "Deployment":
        query["fieldSelector"] = chance.choice(["", "metadata.name=web", "spec.nodeName=a"])
    if chance.random() < 0.3:
        query["limit"] = "1"
    show = ("metadata.remainingItemCount", "kind", "items.#")
    bench.ask("GET", bench.path(kind), show=show, **{k: v for k, v in query.items() if v})


def _patch(bench: Bench, chance: Random, node: str) -> None:
    path = bench.path("Deployment", "web")
    container: Json = chance.choice(
        [
            {"name": "main", "image": "two"},
            {"name": "main", "env": [{"name": "A", "value": "1"}]},
            {"name": "main", "env": [{"name": "B", "value": "2"}]},
            {"name": "more", "image": "side"},
            {"name": "more", "$patch": "delete"},
        ]
    )
    strategic: Json = {"spec": {"template": {"spec": {"containers": [container]}}}}
    if container.get("name") == "more" and "image" not in container and chance.random() < 0.5:
        strategic = {"metadata": {"labels": {"x": None}}}
    merge: Json = chance.choice(
        [
            {"metadata": {"labels": {"x": "1"}}},
            {"metadata": {"labels": {"x": None}}},
            {"metadata": {"annotations": {"note": "a"}, "resourceVersion": "1"}},
            {"spec": {"replicas": 3}},
            {"spec": {"replicas": -1}},
            {"spec": {"replicas": "many"}},
            {"spec": {"selector": {"matchLabels": {"app": "other"}}}},
            {"status": {"replicas": 99}},
            {"metadata": {"name": "other"}},
            {"metadata": {"uid": "another"}},
        ]
    )
    operations: list[Json] = chance.choice(
        [
            [{"op": "replace", "path": "/spec/replicas", "value": 2}],
            [{"op": "test", "path": "/spec/replicas", "value": 77}],
            [{"op": "add", "path": "/metadata/labels/y", "value": "1"}],
            [{"op": "remove", "path": "/metadata/labels/none"}],
            [{"op": "add", "path": "/metadata/none/y", "value": "1"}],
            [{"op": "replace", "path": "/metadata/labels/none", "value": "1"}],
            [
                {"op": "add", "path": "/metadata/annotations", "value": {}},
                {"op": "add", "path": "/metadata/annotations/a~1b", "value": "1"},
            ],
            [{"op": "jump", "path": "/spec"}],
        ]
    )
    kind, body = chance.choice([(STRATEGIC, strategic), (MERGE, merge), (JSON_PATCH, operations)])
    more = {"dryRun": "All"} if chance.random() < 0.15 else {}
    bench.patch(path, body, kind, show=("metadata.labels", "spec.replicas"), **more)


def _delete(bench: Bench, chance: Random, node: str) -> None:
    pod = f"pod-{chance.randrange(5)}"
    options: dict[str, Any] = chance.choice(
        [
            {"preconditions": {"uid": "another"}},
            {"preconditions": {"resourceVersion": "1"}},
            {"dryRun": ["All"]},
            {"gracePeriodSeconds": 0},
            {"gracePeriodSeconds": 1},
            {},
        ]
    )
    bench.delete("Pod", pod, **options)


def _put(bench: Bench, chance: Random, node: str) -> None:
    body = bench.deployment("web", chance.randint(1, 3))
    body["metadata"]["resourceVersion"] = chance.choice(["1", "{version deployments web}"])
    bench.ask("PUT", bench.path("Deployment", "web"), body, show=("spec.replicas",))


def _create(bench: Bench, chance: Random, node: str) -> None:
    match chance.randrange(6):
        case 0:
            bench.create(bench.pod("pod-0"))
        case 1:
            bench.create(bench.object("Pod", "Not A Name", spec=bench.pod("x")["spec"]))
        case 2:
            wrong = bench.deployment("wrong", 1, bench.template("other"))
            bench.create(wrong)
        case 3:
            rule = {"minAvailable": 1, "maxUnavailable": 1}
            bench.create(bench.budget("both", "web", **rule))
        case 4:
            body = {**bench.pod("lost"), "metadata": {"name": "lost", "namespace": "elsewhere"}}
            bench.post(bench.path("Pod"), body)
        case _:
            bench.ask("GET", bench.path("Pod", "nobody"))
