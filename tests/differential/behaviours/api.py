"""The API: versions, lists, patches, subresources, deletion and evictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tests.differential.bench import FOREVER, Bench
from tests.differential.scenario import MERGE, STRATEGIC


def _versions(bench: Bench) -> None:
    config = bench.object("Service", "one", spec={"ports": [{"port": 80}]})
    path = bench.path("Service", "one")
    bench.create(config)
    bench.create(config)
    bench.create(bench.deployment("web", 0))
    bench.settle()
    deployment = bench.path("Deployment", "web")
    same = {"metadata": {"labels": {"app": None}}}
    bench.patch(deployment, same)  # changes nothing, so the version below still holds
    bench.patch(
        deployment,
        {"metadata": {"resourceVersion": "{version deployments web}", "labels": {"a": "b"}}},
    )
    bench.patch(
        deployment,
        {"metadata": {"resourceVersion": "{version deployments web}", "labels": {"a": "c"}}},
    )
    bench.ask("DELETE", path, {"preconditions": {"resourceVersion": "1"}})
    bench.ask("DELETE", path, {"preconditions": {"uid": "another"}})
    bench.patch(deployment, {"metadata": {"uid": "another"}})
    bench.settle()


def _lists(bench: Bench) -> None:
    node = bench.node("n0")
    for number in range(5):
        tier = "front" if number % 2 else "back"
        bench.create(bench.pod(f"pod-{number}", labels={"tier": tier, f"only-{number}": ""}))
    bench.settle()
    pods, names = bench.path("Pod"), ("items.*.metadata.name", "metadata.remainingItemCount")
    for labels in (
        "tier=front",
        "tier!=front",
        "tier in (front,back),only-1",
        "!only-1",
        "tier notin (front)",
        "only-1=",
        "tier in (",
    ):
        bench.ask("GET", pods, show=names, labelSelector=labels)
    for fields in (
        f"spec.nodeName={node}",
        "spec.nodeName=",
        "status.phase!=Running",
        "metadata.name=pod-3,spec.restartPolicy=Always",
        "spec.priority=0",
    ):
        bench.ask("GET", pods, show=names, fieldSelector=fields)
    bench.ask("GET", pods, show=names, limit="2")
    bench.ask("GET", pods, show=names, limit="2", labelSelector="tier=back")
    bench.settle()


def _patches(bench: Bench) -> None:
    node = bench.node("n0", taints=[{"key": "a", "value": "1", "effect": "PreferNoSchedule"}])
    bench.create(bench.deployment("web", 0))
    bench.settle()
    path, taints = bench.path("Node", node), ("spec.taints.*.key",)
    added = {"spec": {"taints": [{"key": "b", "effect": "PreferNoSchedule"}]}}
    bench.patch(path, added, STRATEGIC, show=taints)
    bench.patch(path, {"spec": {"taints": None}}, MERGE, show=taints)
    last = {"op": "add", "path": "/spec/taints/-", "value": {"key": "c", "effect": "NoSchedule"}}
    bench.json_patch(path, last, show=taints)
    conditions = [{"type": "Mine", "status": "True"}]
    bench.strategic(
        f"{path}/status",
        {"status": {"conditions": conditions}},
        show=("spec.taints.*.key",),
    )
    web, containers = bench.path("Deployment", "web"), ("spec.template.spec.containers.*.image",)
    for container in (
        {"name": "side", "image": "two"},
        {"name": "main", "image": "three"},
        {"name": "side", "$patch": "delete"},
    ):
        body = {"spec": {"template": {"spec": {"containers": [container]}}}}
        bench.strategic(web, body, show=containers)
    whole = {"spec": {"template": {"spec": {"containers": [{"name": "x", "image": "four"}]}}}}
    bench.patch(web, whole, MERGE, show=containers)
    bench.json_patch(web, {"op": "test", "path": "/spec/replicas", "value": 9})
    bench.json_patch(web, {"op": "remove", "path": "/spec/none"})
    bench.patch(web, {}, "application/other+json")
    bench.settle()


def _subresources(bench: Bench) -> None:
    bench.create(bench.deployment("web", 0))
    bench.settle()
    web = bench.path("Deployment", "web")
    generation = ("metadata.generation", "spec.replicas")
    bench.patch(web, {"status": {"replicas": 7}}, show=("metadata.generation", "status.replicas"))
    bench.patch(f"{web}/status", {"spec": {"replicas": 7}}, show=generation)
    bench.patch(web, {"metadata": {"labels": {"a": "b"}}}, show=generation)
    bench.patch(web, {"spec": {"minReadySeconds": 1}}, show=generation)
    bench.ask("GET", f"{web}/scale", show=("spec.replicas", "status.selector", "kind"))
    bench.patch(f"{web}/scale", {"spec": {"replicas": 1}}, show=("spec.replicas",))
    bench.patch(f"{web}/scale", {"spec": {"replicas": -1}})
    bench.patch(f"{bench.path('Pod', 'nobody')}/scale", {"spec": {"replicas": 1}})
    bench.settle()


def _deletion(bench: Bench) -> None:
    bench.node("n0")
    slow = {"stop": FOREVER, "terminationGracePeriodSeconds": 600}
    for name in ("shorter", "longer", "forced"):
        bench.create(bench.pod(name, **slow))
    bench.create(bench.pod("waiting", cpu="64"), bench.pod("quick"))
    bench.settle()
    bench.delete("Pod", "shorter", preconditions={"uid": "{uid pods longer}"})
    bench.delete("Pod", "shorter", preconditions={"uid": "{uid pods shorter}"})
    bench.delete("Pod", "longer", gracePeriodSeconds=300)
    bench.delete("Pod", "forced")
    bench.delete("Pod", "waiting")
    bench.delete("Pod", "quick", dryRun=["All"])
    bench.settle()
    bench.delete("Pod", "shorter", gracePeriodSeconds=200)
    bench.delete("Pod", "longer", gracePeriodSeconds=500)
    bench.delete("Pod", "forced", gracePeriodSeconds=0)
    bench.settle()


def _evictions(bench: Bench) -> None:
    bench.node("n0")
    bench.create(
        bench.deployment("web", 3),
        bench.budget("web", "web", minAvailable=2),
        bench.workload("ReplicaSet", "twice", 2),
        bench.budget("twice-a", "twice", maxUnavailable=1),
        bench.budget("twice-b", "twice", maxUnavailable=1),
        bench.workload("StatefulSet", "sick", 2, podManagementPolicy="Parallel"),
        bench.budget("sick", "sick", minAvailable=2, unhealthyPodEvictionPolicy="AlwaysAllow"),
        bench.workload("StatefulSet", "ill", 2, podManagementPolicy="Parallel"),
        bench.budget("ill", "ill", minAvailable=2),
        bench.pod("big", cpu="64"),
        bench.budget("big", "big", maxUnavailable=0),
    )
    bench.settle()
    bench.unready("sick-0")
    bench.unready("ill-0")
    bench.settle()
    bench.evict("nobody")
    bench.settle()
    bench.evict("{pod web 0}")
    bench.evict("{pod web 1}")
    bench.evict("{pod twice 0}")
    bench.evict("sick-0")
    bench.evict("ill-0")
    bench.evict("ill-1")
    bench.evict("big")
    bench.settle()
    bench.evict("{pod web 0}", preconditions={"uid": "another"})
    bench.evict("{pod web 1}", dryRun=["All"])
    bench.settle()
    bench.create(bench.pod("fresh", stop=FOREVER, terminationGracePeriodSeconds=600))
    bench.settle()
    bench.evict("fresh", gracePeriodSeconds=100)
    bench.settle()
    bench.evict("fresh")
    bench.settle()


def _finalizers(bench: Bench) -> None:
    bench.node("n0")
    held = {"finalizers": ["example.com/held"]}
    service = bench.object("Service", "held", spec={"ports": [{"port": 80}]})
    service["metadata"] |= held
    pod = bench.pod("held")
    pod["metadata"] |= held
    template = bench.template("web")
    template["metadata"] |= held
    bench.create(service, pod, bench.deployment("web", 2, template))
    bench.settle()
    path, shown = bench.path("Service", "held"), ("metadata.deletionGracePeriodSeconds",)
    bench.ask("DELETE", path)
    bench.ask("GET", path, show=shown)
    bench.evict("held")
    bench.evict("{pod web 0}")
    bench.settle(2)
    bench.delete("Pod", "held", gracePeriodSeconds=0)
    bench.ask("GET", path, show=shown)
    bench.settle()
    bench.patch(path, {"metadata": {"finalizers": None}})
    bench.patch(bench.path("Pod", "held"), {"metadata": {"finalizers": None}})
    bench.ask("GET", path)
    bench.settle()


def _webhooks(bench: Bench) -> None:
    bench.node("n0")
    bench.create(bench.deployment("web", 2), bench.pod("db-0"), bench.pod("db-1"))
    bench.settle()  # bound before a webhook forbids it
    bench.create(
        bench.webhook("waits", "/deny/429/db-0", "CREATE", "pods/eviction"),
        bench.webhook("forbids", "/deny/403/db-1", "CREATE", "pods/*"),
        bench.webhook("keeps", "/deny/403/db-1", "DELETE", "pods"),
    )
    bench.settle(3)  # the API server reads them from a cache
    bench.evict("db-0")
    bench.settle()
    bench.evict("db-1")
    bench.evict("nobody")
    bench.evict("{pod web 0}")
    bench.delete("Pod", "db-1")
    bench.delete("Pod", "db-0")
    bench.settle()
    bench.create(
        bench.webhook("makes", "/away", "CREATE", "pods"),
        bench.webhook("changes", "/away", "UPDATE", "pods"),
    )
    bench.settle(3)
    bench.create(bench.pod("new"))
    bench.label("Pod", "db-1", seen="yes")
    bench.evict("{pod web 0}")
    bench.settle()
    for name in ("makes", "changes"):
        bench.delete("ValidatingWebhookConfiguration", f"{bench.name}-{name}")
    bench.settle(20)  # a controller tries again


def _mutating_webhooks(bench: Bench) -> None:
    bench.node("n0", cpu="1")
    bench.create(
        bench.mutating("adds", "/sidecar/200m", "web"),
        bench.mutating("sets", "/cpu/350m", "db"),
        bench.mutating("fails", "/away", "none"),
    )
    bench.settle(3)
    shown = (
        "spec.containers.*.resources.requests.cpu",
        "spec.initContainers.*.resources.requests.cpu",
    )
    bench.create(bench.pod("db"), bench.pod("other"), show=shown)
    bench.create(bench.pod("none"))
    bench.post(bench.path("Pod"), bench.pod("canary", app="web"), show=shown, dryRun="All")
    bench.settle()
    bench.create(bench.deployment("web", 3))
    bench.settle()
    bench.delete("MutatingWebhookConfiguration", f"{bench.name}-adds")
    bench.settle(3)
    bench.create(bench.pod("later", app="web"), show=shown)
    bench.settle()


def _garbage(bench: Bench) -> None:
    bench.node("n0")
    bench.create(
        bench.deployment("web", 2),
        bench.workload("ReplicaSet", "left", 2),
        bench.workload("StatefulSet", "db", 1),
    )
    bench.settle()
    bench.delete("Deployment", "web", propagationPolicy="Background")
    bench.delete("ReplicaSet", "left", propagationPolicy="Orphan")
    bench.delete("StatefulSet", "db")
    bench.settle(2)


BEHAVIOURS: Final[Mapping[str, Callable[[Bench], None]]] = {
    "versions": _versions,
    "lists": _lists,
    "patches": _patches,
    "subresources": _subresources,
    "deletion": _deletion,
    "evictions": _evictions,
    "finalizers": _finalizers,
    "webhooks": _webhooks,
    "mutating-webhooks": _mutating_webhooks,
    "garbage": _garbage,
}
