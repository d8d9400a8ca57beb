"""A fake cluster at play: time that moves when a test says so, and words for what is in it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from plimsoll.adapters.kubernetes.transport import Response
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.conditions import is_deleting, is_ready
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_simulation.fake_cluster.state import PodStopped
from plimsoll_simulation.fake_cluster.store import Change

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ZONE = "topology.kubernetes.io/zone"
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

type Json = dict[str, Any]


class Play:
    """One cluster, and the time it has reached."""

    def __init__(self, seed: int = 0, **settings: float) -> None:
        spans: dict[str, Any] = {name: timedelta(seconds=value) for name, value in settings.items()}
        self.cluster = FakeCluster(now=START, seed=seed, settings=Settings(**spans))
        self.now = START
        self.stops: list[PodStopped] = []
        self.changes: list[Change] = []
        self.cluster.on_pod_stopped(self.stops.append)
        self.cluster.on_change(lambda c: self.changes.append(c) if c.resource == "pods" else None)

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.cluster.step(self.now)

    def nodes(self, *names: str, **more: Any) -> None:
        for name in names:
            self.cluster.join(a_node(name, **more), now=self.now)

    def apply(self, *manifests: Json) -> None:
        self.cluster.apply(manifests, now=self.now)

    def call(
        self, method: str, path: str, body: Any = None, content_type: str = MERGE, **query: str
    ) -> Response:
        return self.cluster.handle(
            method, path, query, body, content_type, now=self.now, user="tests/1"
        )

    def patch(self, path: str, body: Any) -> Response:
        answer = self.call("PATCH", path, body)
        assert answer.status == 200, answer.body
        return answer

    def get(self, path: str) -> Json:
        found: Json = self.call("GET", path).body
        return found

    def pods(self, app: str | None = None) -> Sequence[Json]:
        """The pods of an app, oldest first."""
        found = self.cluster.store.all("pods")
        mine = [p for p in found if app in {None, p["metadata"].get("labels", {}).get("app")}]
        return sorted(mine, key=lambda p: int(p["metadata"]["resourceVersion"]))

    def names(self, app: str | None = None) -> set[str]:
        return {p["metadata"]["name"] for p in self.pods(app)}

    def serving(self, app: str | None = None) -> set[str]:
        """Names of the pods that are Ready and were not told to go."""
        return {p["metadata"]["name"] for p in self.pods(app) if is_ready(p) and not is_deleting(p)}

    def pods_on(self, node: str) -> set[str]:
        return {p["metadata"]["name"] for p in self.pods() if p["spec"].get("nodeName") == node}

    def evict(self, name: str, **options: Any) -> Response:
        body: Json = {"metadata": {"name": name, "namespace": "default"}}
        if options:
            body["deleteOptions"] = options
        return self.call("POST", f"{PODS}/{name}/eviction", body)

    def delete(self, name: str, **options: Any) -> Response:
        return self.call("DELETE", f"{PODS}/{name}", options or None)

    def cordon(self, name: str) -> None:
        self.patch(f"{NODES}/{name}", {"spec": {"unschedulable": True}})


def a_node(name: str, *, zone: str = "us-east-1a", cpu: str = "8", **labels: str) -> Json:
    return {
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, ZONE: zone, **labels},
        },
        "spec": {"providerID": f"aws:///{zone}/i-{sum(name.encode()):017x}"},
        "status": {"allocatable": {"cpu": cpu, "memory": "32Gi", "pods": "58"}},
    }


def a_template(
    app: str, *, cpu: str = "500m", annotations: Json | None = None, **spec: Any
) -> Json:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    meta: Json = {"labels": {"app": app}}
    if annotations:
        meta["annotations"] = {f"drill.plimsoll.dev/{k}": v for k, v in annotations.items()}
    return {"metadata": meta, "spec": {"containers": [container], **spec}}


def _workload(kind: str, name: str, template: Json | None, spec: Json) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": template or a_template(name),
            **spec,
        },
    }


def a_deployment(name: str, replicas: int, template: Json | None = None, **spec: Any) -> Json:
    return _workload("Deployment", name, template, {"replicas": replicas, **spec})


def a_stateful_set(name: str, replicas: int, template: Json | None = None, **spec: Any) -> Json:
    more = {"replicas": replicas, "serviceName": name, **spec}
    return _workload("StatefulSet", name, template, more)


def a_daemon_set(name: str, template: Json | None = None, **spec: Any) -> Json:
    return _workload("DaemonSet", name, template, spec)


def a_budget(name: str, app: str, **spec: Any) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


def a_pod(name: str, template: Json | None = None) -> Json:
    template = template or a_template(name)
    meta = {**template["metadata"], "name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}
