"""A part of a shared control plane: a namespace of its own, and nodes that only its pods go to."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any, Self

from plimsoll.adapters.kubernetes.client import ClientTransport
from plimsoll.adapters.kubernetes.transport import Response
from plimsoll.domain.errors import Temporary
from plimsoll_simulation.fake_cluster.conditions import is_deleting, is_ready
from plimsoll_simulation.fake_cluster.resources import BY_KIND, path_of
from plimsoll_simulation.fake_cluster.state import PodStopped
from plimsoll_testbed.rigs.controlplane import ControlPlane
from tests.support.fake_clusters import MERGE, a_node

PATIENCE = 60.0
"""Seconds until a test gives up; the machine may be busy."""
KEY = "ground"

type Json = dict[str, Any]

_numbers = itertools.count(1)


class Ground(AbstractContextManager["Ground"]):
    """Calls and looks of one test."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.name = f"ground-{next(_numbers)}"
        self.api: ClientTransport = plane.transport()
        self.stops: list[PodStopped] = []
        self._nodes: list[str] = []

    def __enter__(self) -> Self:
        self.plane.on_pod_stopped(self._stopped)
        self.create("/api/v1/namespaces", {"metadata": {"name": self.name}})
        return self

    def __exit__(self, *_: object) -> None:
        self.api.call("DELETE", f"/api/v1/namespaces/{self.name}")
        for name in self._nodes:
            self.api.call("DELETE", f"/api/v1/nodes/{name}")

    @property
    def pods_path(self) -> str:
        return f"/api/v1/namespaces/{self.name}/pods"

    def nodes(self, *names: str, **more: Any) -> list[str]:
        """Let nodes join; their names get the ground's in front, so that tests do not meet."""
        named = [f"{self.name}-{name}" for name in names]
        self.plane.join(*(a_node(name, **{KEY: self.name}, **more) for name in named))
        self._nodes += named
        return named

    def call(self, method: str, path: str, body: Any = None, content_type: str = "") -> Response:
        kind = content_type or ("application/json" if body is not None else None)
        return self.api.call(method, path, body=body, content_type=kind)

    def create(self, path: str, body: Json) -> Json:
        answer = self.call("POST", path, body)
        assert answer.status == 201, answer.body
        created: Json = answer.body
        return created

    def apply(self, *manifests: Json) -> None:
        """Create manifests in the ground's namespace, their pods on its nodes."""
        for manifest in manifests:
            body = {**manifest, "metadata": {**manifest["metadata"], "namespace": self.name}}
            self.create(_path_of(body), _here(body, self.name))

    def get(self, path: str) -> Json:
        answer = self.call("GET", path)
        assert answer.status == 200, answer.body
        found: Json = answer.body
        return found

    def pods(self, app: str | None = None) -> list[Json]:
        found: list[Json] = self.get(self.pods_path)["items"]
        return [p for p in found if app in {None, p["metadata"].get("labels", {}).get("app")}]

    def pod(self, name: str) -> Json | None:
        answer = self.call("GET", f"{self.pods_path}/{name}")
        return answer.body if answer.status == 200 else None

    def serving(self, app: str | None = None) -> list[Json]:
        return [p for p in self.pods(app) if is_ready(p) and not is_deleting(p)]

    def delete(self, pod: str, **options: Any) -> Response:
        return self.call("DELETE", f"{self.pods_path}/{pod}", options or None)

    def cordon(self, node: str) -> None:
        spec = {"spec": {"unschedulable": True}}
        answer = self.call("PATCH", f"/api/v1/nodes/{node}", spec, MERGE)
        assert answer.status == 200, answer.body

    def lose(self, node: str) -> None:
        """Let the instance of a node be gone, and its Node be not Ready."""
        path = f"/api/v1/nodes/{node}"
        down = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
        self.plane.vanish(node)

        def stays_down() -> bool:
            self.call("PATCH", f"{path}/status", down, MERGE)
            time.sleep(0.5)  # KWOK may be about to say that it is Ready
            return not is_ready(self.get(path))

        self.until(stays_down)

    def until[T](self, look: Callable[[], T], seconds: float = PATIENCE) -> T:
        """Wait until something is so, and return it; an API server that is late is asked again."""
        end = time.monotonic() + seconds
        while True:
            with suppress(Temporary):
                if found := look():
                    return found
            assert time.monotonic() < end, f"not so after {seconds:.0f} s: {self.pods()}"
            time.sleep(0.05)

    def _stopped(self, stopped: PodStopped) -> None:
        if stopped.pod["metadata"]["namespace"] == self.name:
            self.stops.append(stopped)


def _path_of(manifest: Json) -> str:
    """Return the path of a manifest's collection; of custom resources by their kind."""
    if manifest["kind"] in BY_KIND:
        return path_of(manifest)[0]
    kind, namespace = manifest["kind"].lower(), manifest["metadata"]["namespace"]
    return f"/apis/{manifest['apiVersion']}/namespaces/{namespace}/{kind}s"


def _here(manifest: Json, ground: str) -> Json:
    """Return a manifest whose pods go to the ground's nodes."""
    spec = dict(manifest.get("spec", {}))
    if manifest["kind"] == "Pod":
        spec["nodeSelector"] = {**spec.get("nodeSelector", {}), KEY: ground}
    elif "template" in spec:
        template = _here({"kind": "Pod", **spec["template"]}, ground)
        template.pop("kind")
        spec["template"] = template
    else:
        return manifest
    return {**manifest, "spec": spec}
