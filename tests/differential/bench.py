"""Words in which scenarios are written: objects that belong to one scenario, and requests on them.

Start-up and stop times are short, so that hundreds of scenarios take minutes on the real side.
"""

from __future__ import annotations

from typing import Any

from plimsoll_simulation.fake_cluster.resources import BY_KIND, path_of
from tests.differential.scenario import (
    JSON,
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    Json,
    Request,
    Scenario,
    Step,
)
from tests.differential.sides import OF

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
CAPACITY = "node.kubernetes.io/capacity"
FOREVER = "1h"
"""The stop time of a pod that goes only by force."""
_DRILL = "drill.plimsoll.dev/"
WEBHOOKS = "https://webhooks.invalid"
"""Stands for the address of the server that answers as webhooks do."""


class Bench:
    """One scenario while it is written."""

    def __init__(self, name: str, family: str) -> None:
        self.name = name
        self.family = family
        self._steps: list[Step] = []
        self._next: list[Request] = []
        self._ordered: set[str] = set()

    # What there is

    def node(
        self, name: str, *, zone: str = "a", cpu: str = "4", pods: str = "20", **more: Any
    ) -> str:
        """Let a node join; its name bears that of the scenario. Return it."""
        full = f"{self.name}-{name}"
        labels = {OF: self.name, HOST: full, ZONE: f"zone-{zone}", **more.pop("labels", {})}
        headroom = {"cpu": cpu, "memory": "16Gi", "pods": pods, **more.pop("room", {})}
        node: Json = {
            "metadata": {"name": full, "labels": labels},
            "spec": more,
            "status": {"allocatable": headroom, "capacity": headroom},
        }
        self.post("/api/v1/nodes", node)
        return full

    def template(self, app: str, **options: Any) -> Json:
        """Return a pod template. Options: cpu, labels, startup, stop, never_ready, run, image;
        the rest is of its spec.
        """
        annotations = {
            f"{_DRILL}startup": options.pop("startup", "1s"),
            f"{_DRILL}stop": options.pop("stop", "0.4s"),
        }
        if options.pop("never_ready", False):
            annotations[f"{_DRILL}never-ready"] = "true"
        if run := options.pop("run", None):
            annotations[f"{_DRILL}run"] = run
        annotations |= options.pop("annotations", {})
        labels = {"app": app, **options.pop("labels", {})}
        container: Json = {"name": "main", "image": options.pop("image", "one")}
        if cpu := options.pop("cpu", "100m"):
            container["resources"] = {"requests": {"cpu": cpu, **options.pop("requests", {})}}
        if ports := options.pop("ports", None):
            container["ports"] = ports
        selector = {OF: self.name, **options.pop("nodeSelector", {})}
        spec = {"nodeSelector": selector, "containers": [container], **options}
        return {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}

    def object(self, kind: str, name: str, **parts: Any) -> Json:
        """Return an object of the scenario's namespace, or cluster-wide with its label."""
        line = BY_KIND[kind]
        meta: Json = {"name": name, "labels": {OF: self.name}, **parts.pop("metadata", {})}
        if line.namespaced:
            meta["namespace"] = self.name
        return {"apiVersion": line.api_version, "kind": kind, "metadata": meta, **parts}

    def pod(self, name: str, **options: Any) -> Json:
        template = self.template(options.pop("app", name), **options)
        return self.object("Pod", name, metadata=template["metadata"], spec=template["spec"])

    def workload(
        self, kind: str, name: str, replicas: int | None, template: Json | None = None, **spec: Any
    ) -> Json:
        """Return a Deployment, ReplicaSet, StatefulSet (`replicas`) or DaemonSet (None)."""
        if kind == "StatefulSet":
            spec.setdefault("serviceName", name)
            if spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady":
                self._ordered.add(name)
        if replicas is not None:
            spec["replicas"] = replicas
        body = {
            "selector": {"matchLabels": {"app": name}},
            "template": template or self.template(name),
            **spec,
        }
        return self.object(kind, name, spec=body)

    def deployment(
        self, name: str, replicas: int, template: Json | None = None, **spec: Any
    ) -> Json:
        return self.workload("Deployment", name, replicas, template, **spec)

    def job(self, name: str, template: Json | None = None, **spec: Any) -> Json:
        template = template or self.template(name, run="1s", restartPolicy="Never")
        return self.object("Job", name, spec={"template": template, **spec})

    def budget(self, name: str, app: str | None, **spec: Any) -> Json:
        selector = {"matchLabels": {"app": app}} if app else {}
        return self.object("PodDisruptionBudget", name, spec={"selector": selector, **spec})

    def webhook(self, name: str, path: str, operation: str, resource: str) -> Json:
        """Return a validating webhook for requests on objects of the scenario's namespace."""
        rule = {
            "operations": [operation],
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "resources": [resource],
        }
        hook = {
            "name": f"{name}.example.com",
            "rules": [rule],
            "clientConfig": {"url": f"{WEBHOOKS}{path}"},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.name}},
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
        }
        full = f"{self.name}-{name}"
        return self.object("ValidatingWebhookConfiguration", full, webhooks=[hook])

    def mutating(self, name: str, path: str, app: str) -> Json:
        """Return a mutating webhook for new pods of an app."""
        made = self.webhook(name, path, "CREATE", "pods")
        hook = {**made["webhooks"][0], "objectSelector": {"matchLabels": {"app": app}}}
        return {**made, "kind": "MutatingWebhookConfiguration", "webhooks": [hook]}

    def quota(self, name: str, hard: Json, **spec: Any) -> Json:
        return self.object("ResourceQuota", name, spec={"hard": hard, **spec})

    def priority(self, name: str, value: int, **more: Any) -> str:
        """Make a PriorityClass; return its name, which bears that of the scenario."""
        full = f"{self.name}-{name}"
        self.create(self.object("PriorityClass", full, value=value, **more))
        return full

    # What is done

    def path(self, kind: str, name: str = "", sub: str = "") -> str:
        """Return the path of an object, its collection or a subresource."""
        meta = {"name": name or "-", "namespace": self.name}
        collection, _ = path_of({"kind": kind, "metadata": meta})
        return "/".join(part for part in (collection, name, sub) if part)

    def create(self, *objects: Json, show: tuple[str, ...] = ()) -> None:
        for obj in objects:
            meta = {**obj["metadata"]}
            path = self.path(obj["kind"])
            self.post(path, {**obj, "metadata": meta}, show=show)

    def post(self, path: str, body: Any, *, show: tuple[str, ...] = (), **query: str) -> None:
        self.ask("POST", path, body, show=show, **query)

    def patch(
        self,
        path: str,
        body: Any,
        content_type: str = MERGE,
        *,
        show: tuple[str, ...] = (),
        **query: str,
    ) -> None:
        self.ask("PATCH", path, body, content_type, show=show, **query)

    def strategic(self, path: str, body: Any, *, show: tuple[str, ...] = ()) -> None:
        self.patch(path, body, STRATEGIC, show=show)

    def json_patch(self, path: str, *operations: Json, show: tuple[str, ...] = ()) -> None:
        self.patch(path, list(operations), JSON_PATCH, show=show)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = JSON,
        *,
        show: tuple[str, ...] = (),
        **query: str,
    ) -> None:
        """Put a request into the step that is being written."""
        self._next.append(
            Request(
                method=method,
                path=path,
                body=body,
                content_type=content_type,
                query=query,
                show=show,
            )
        )

    def scale(self, kind: str, name: str, replicas: int) -> None:
        self.patch(self.path(kind, name, "scale"), {"spec": {"replicas": replicas}})

    def roll(self, kind: str, name: str, image: str, **spec: Any) -> None:
        """Change the image of a workload's pods."""
        template = {"spec": {"containers": [{"name": "main", "image": image}]}}
        self.strategic(self.path(kind, name), {"spec": {"template": template, **spec}})

    def evict(self, pod: str, **options: Any) -> None:
        """Evict a pod: a name, or words such as `web 0` or `web @node` in braces."""
        body: Json = {"metadata": {"name": pod, "namespace": self.name}}
        body |= {"apiVersion": "policy/v1", "kind": "Eviction"}
        if options:
            body["deleteOptions"] = options
        # Later ones of a step race with the controller that counts, and so do their words.
        show = () if self._next else ("message", "details.causes.*.message")
        self.post(self.path("Pod", pod, "eviction"), body, show=show)

    def delete(self, kind: str, name: str, **options: Any) -> None:
        self.ask("DELETE", self.path(kind, name), options or None)

    def cordon(self, node: str, *, on: bool = True) -> None:
        self.patch(self.path("Node", node), {"spec": {"unschedulable": on}})

    def taint(self, node: str, *taints: str) -> None:
        """Set the taints of a node, written `key=value:Effect`."""
        found = []
        for taint in taints:
            pair, _, effect = taint.partition(":")
            key, _, value = pair.partition("=")
            found.append({"key": key, "effect": effect, **({"value": value} if value else {})})
        self.patch(self.path("Node", node), {"spec": {"taints": found}})

    def label(self, kind: str, name: str, **labels: str | None) -> None:
        self.patch(self.path(kind, name), {"metadata": {"labels": labels}})

    def unready(self, pod: str) -> None:
        """Let a pod's readiness probe fail, as its kubelet would say."""
        conditions = [{"type": kind, "status": "False"} for kind in ("Ready", "ContainersReady")]
        self.strategic(self.path("Pod", pod, "status"), {"status": {"conditions": conditions}})

    def resize(self, pod: str, cpu: str, show: tuple[str, ...] = (), **more: Any) -> None:
        """Resize the container of a pod in place; `more` is sent with it."""
        container = {"name": "main", "resources": {"requests": {"cpu": cpu}}, **more}
        body = {"spec": {"containers": [container]}}
        self.strategic(self.path("Pod", pod, "resize"), body, show=show)

    def devices(self, node: str, **devices: str) -> None:
        """Let the device plugins of a node report."""
        found = {f"example.com/{name}": amount for name, amount in devices.items()}
        self.offer(node, **found)

    def offer(self, node: str, **amounts: str) -> None:
        """Let a node have other amounts for its pods."""
        body = {"status": {"capacity": amounts, "allocatable": amounts}}
        self.patch(f"{self.path('Node', node)}/status", body)

    def cost(self, pod: str, cost: int) -> None:
        """Set the deletion cost of a pod."""
        annotations = {"controller.kubernetes.io/pod-deletion-cost": str(cost)}
        self.patch(self.path("Pod", pod), {"metadata": {"annotations": annotations}})

    def settle(self, seconds: float = 0) -> None:
        """End the step: both clusters come to rest, and are compared."""
        self._steps.append(Step(requests=tuple(self._next), seconds=seconds))
        self._next = []

    def done(self, *, alone: bool = False) -> Scenario:
        """Return the scenario."""
        if self._next:
            self.settle()
        return Scenario(
            name=self.name,
            family=self.family,
            steps=tuple(self._steps),
            alone=alone,
            ordered=frozenset(self._ordered),
        )
