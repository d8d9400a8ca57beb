"""Requests about a part of an object, or an act on it. Adding one is one line in the table.

Sources: https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/ and the API
reference of bindings, scale and status.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from plimsoll_simulation.fake_cluster import quotas
from plimsoll_simulation.fake_cluster.conditions import with_condition
from plimsoll_simulation.fake_cluster.edits import Json, look, put
from plimsoll_simulation.fake_cluster.eviction import evict
from plimsoll_simulation.fake_cluster.patches import patched
from plimsoll_simulation.fake_cluster.refusals import (
    bad_request,
    conflict,
    forbidden,
    invalid,
    method_not_allowed,
    no_such_page,
)
from plimsoll_simulation.fake_cluster.resizes import too_large
from plimsoll_simulation.fake_cluster.routes import Target
from plimsoll_simulation.fake_cluster.store import Store
from plimsoll_simulation.fake_cluster.webhooks import ask


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, taken apart."""

    method: str
    target: Target
    query: Mapping[str, str]
    body: Any
    content_type: str
    now: datetime
    user: str
    """The client's user agent."""

    @property
    def dry_run(self) -> bool:
        """Whether nothing may be written."""
        return bool(self.query.get("dryRun"))

    @property
    def name(self) -> str:
        """The name in the path."""
        return self.target.name or ""

    def found(self, store: Store) -> Json:
        """Return the object that the path names, or refuse with 404."""
        return store.must_get(self.target.resource.plural, self.target.namespace or "", self.name)

    def named_body(self, before: Json) -> Json:
        """Return the body of a PUT with the key that the path gives it."""
        if not isinstance(self.body, dict):
            raise bad_request("the body is not an object")
        meta = {"name": self.name, **(self.body.get("metadata") or {})}
        if self.target.namespace:
            meta.setdefault("namespace", self.target.namespace)
        own = {k: v for k, v in before["metadata"].items() if k in {"uid", "generation"}}
        return {**self.body, "metadata": {**own, **meta}}


type Serve = Callable[[Store, Request], tuple[int, Json]]

_SUCCESS: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


def _eviction(store: Store, request: Request) -> tuple[int, Json]:
    if request.method != "POST":
        raise method_not_allowed()
    namespace, body = request.target.namespace or "", request.body or {}
    asked = {**body, "metadata": {"name": request.name, "namespace": namespace}}
    store.must_get("pods", namespace, request.name)
    ask("CREATE", "pods/eviction", asked, store)
    evict(store, namespace, request.name, body, now=request.now)
    return 201, {**_SUCCESS, "code": 201}


def _binding(store: Store, request: Request) -> tuple[int, Json]:
    if request.method != "POST":
        raise method_not_allowed()
    pod, node = request.found(store), look(request.body, "target", "name", default="")
    if held := look(pod, "spec", "nodeName"):
        why = f'pod {request.name} is already assigned to node "{held}"'
        raise conflict(request.target.resource, request.name, why)
    bind(store, pod, node, now=request.now)
    return 201, {**_SUCCESS, "code": 201}


def bind(store: Store, pod: Json, node: str, *, now: datetime) -> Json:
    """Assign a pod to a node, which ends its nomination.

    Source: pkg/registry/core/pod/storage, assignPod.
    """
    bound = put(pod, ("spec", "nodeName"), node)
    if look(pod, "status", "nominatedNodeName"):
        status = {k: v for k, v in pod["status"].items() if k != "nominatedNodeName"}
        bound = {**bound, "status": status}
    return store.replace("pods", with_condition(bound, "PodScheduled", "True", now=now), now=now)


def _status(store: Store, request: Request) -> tuple[int, Json]:
    before = request.found(store)
    if not request.target.resource.status:
        raise no_such_page()
    obj = _sent(request, before)
    if obj is None:
        return 200, before
    version = obj["metadata"].get("resourceVersion", before["metadata"]["resourceVersion"])
    meta = {**before["metadata"], "resourceVersion": version}
    new = {**before, "metadata": meta, "status": obj.get("status") or {}}
    plural = request.target.resource.plural
    return 200, new if request.dry_run else store.replace(plural, new, now=request.now)


def _sent(request: Request, before: Json) -> Json | None:
    """Return what a PUT or PATCH makes of an object; None where it is only read."""
    match request.method:
        case "GET":
            return None
        case "PUT":
            return request.named_body(before)
        case "PATCH":
            return patched(before, request.body, request.content_type)
        case _:
            raise method_not_allowed()


def _resize(store: Store, request: Request) -> tuple[int, Json]:
    """Change the resources of a pod's containers; whatever else is sent is dropped.

    Sources: pkg/registry/core/pod/strategy.go, dropNonResizeUpdates; plugin/pkg/admission/podresize
    """
    before = request.found(store)
    obj = _sent(request, before)
    if obj is None:
        return 200, before
    spec = {**before["spec"]}
    for field in ("containers", "initContainers"):
        if field in spec:
            sent = {each["name"]: each for each in look(obj, "spec", field, default=())}
            spec[field] = [_with_resources(each, sent) for each in spec[field]]
    new = {**before, "spec": spec}
    ask("UPDATE", "pods/resize", new, store)
    node = store.get("nodes", "", look(new, "spec", "nodeName", default=""))
    if node is not None and too_large(new, node):
        why = "node didn't have enough allocatable resources"
        raise forbidden(request.target.resource, request.name, why, cause="NodeCapacity")
    quotas.check(new, store, request.now, before)
    return 200, new if request.dry_run else store.replace("pods", new, now=request.now)


def _with_resources(container: Json, sent: Mapping[str, Json]) -> Json:
    resources = sent.get(container["name"], container).get("resources")
    return container if resources is None else {**container, "resources": resources}


def _scale(store: Store, request: Request) -> tuple[int, Json]:
    line, before = request.target.resource, request.found(store)
    if not line.scale:
        raise no_such_page()
    scale = _scale_of(before)
    if request.method == "GET":
        return 200, scale
    if request.method == "PUT":
        new = request.body
    elif request.method == "PATCH":
        new = patched(scale, request.body, request.content_type)
    else:
        raise method_not_allowed()
    replicas = look(new, "spec", "replicas", default=0)
    if not isinstance(replicas, int) or replicas < 0:
        why = f"Invalid value: {replicas!r}: must be greater than or equal to 0"
        raise invalid(line, request.name, "spec.replicas", why)
    version = look(new, "metadata", "resourceVersion")
    obj = put(before, ("spec", "replicas"), replicas)
    if version:
        obj = put(obj, ("metadata", "resourceVersion"), version)
    if not request.dry_run:
        obj = store.replace(line.plural, obj, now=request.now)
    return 200, _scale_of(obj)


def _scale_of(obj: Json) -> Json:
    meta = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    selector = look(obj, "spec", "selector", "matchLabels", default={})
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {k: meta[k] for k in kept if k in meta},
        "spec": {"replicas": look(obj, "spec", "replicas", default=0)},
        "status": {
            "replicas": look(obj, "status", "replicas", default=0),
            "selector": ",".join(f"{k}={v}" for k, v in sorted(selector.items())),
        },
    }


SUBRESOURCES: Mapping[tuple[str, str], Serve] = {
    ("pods", "eviction"): _eviction,
    ("pods", "binding"): _binding,
    ("pods", "resize"): _resize,
    ("*", "status"): _status,
    ("*", "scale"): _scale,
}
"""(plural, subresource); `*` stands for every kind, which may still have none."""


def serve_of(plural: str, subresource: str) -> Serve:
    """Return what serves a subresource.

    Raises:
        RefusedError: 404, there is none of this name.
    """
    serve = SUBRESOURCES.get((plural, subresource)) or SUBRESOURCES.get(("*", subresource))
    if serve is None:
        raise no_such_page()
    return serve
