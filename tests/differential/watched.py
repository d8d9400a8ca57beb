"""Requests to a real control plane, and what its watches show, kept for many scenarios at once."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from urllib.parse import quote, urlencode

import urllib3

from plimsoll_simulation.fake_cluster.resources import BY_PLURAL, Resource
from plimsoll_simulation.rigs.access import Access
from tests.differential.scenario import JSON, MERGE, Json, Request
from tests.differential.sides import OF, SEEN, USER, Response, Seen
from tests.differential.webhook_server import WebhookServer

_HANGING = 15.0
_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1"


class ControlPlane:
    """Requests to one API server, and a cache of its objects that watches keep up to date."""

    def __init__(self, endpoint: Access, webhooks: WebhookServer) -> None:
        self._webhooks = webhooks
        self._url = endpoint.url
        self._token = {
            "Authorization": f"Bearer {endpoint.token}",
            "User-Agent": USER,
        }
        self._pool = urllib3.PoolManager(
            maxsize=64,
            retries=False,
            ssl_context=ssl.create_default_context(cadata=endpoint.ca),
        )
        self._lock = threading.Lock()
        self._objects: dict[str, dict[tuple[str, str], Json]] = {r: {} for r in SEEN}
        self._changes: defaultdict[str, list[Seen]] = defaultdict(list)
        self._changed: defaultdict[str, float] = defaultdict(float)
        self._over = threading.Event()
        self._watchers = [threading.Thread(target=self._watch, args=(r,)) for r in SEEN]
        for watcher in self._watchers:
            watcher.start()

    def close(self) -> None:
        """Stop to watch."""
        self._over.set()
        for watcher in self._watchers:
            watcher.join()
        self._pool.clear()

    def send(self, request: Request) -> Response:
        """Send one request and read its answer whole."""
        path = quote(request.path, safe="/:")
        query = f"?{urlencode(request.query)}" if request.query else ""
        found = self._pool.request(
            request.method,
            f"{self._url}{path}{query}",
            body=None if request.body is None else json.dumps(self._webhooks.reached(request.body)),
            headers={**self._token, "Content-Type": request.content_type},
            timeout=30,
        )
        return Response(
            status=found.status, body=json.loads(found.data), headers=dict(found.headers)
        )

    def touch(self, scenario: str) -> None:
        """Begin a new wait for silence."""
        with self._lock:
            self._changed[scenario] = time.monotonic()

    def quiet_for(self, scenario: str) -> float:
        """Return the seconds since anything of a scenario changed."""
        with self._lock:
            return time.monotonic() - self._changed[scenario]

    def objects(self, scenario: str, resource: str) -> Sequence[Json]:
        """Return what belongs to a scenario, in the order of the names."""
        with self._lock:
            found = self._objects[resource]
            return [found[key] for key in sorted(found) if _owner(found[key]) == scenario]

    def changes(self, scenario: str) -> Sequence[Seen]:
        """Return what changed since this was last asked, in the order of the versions."""
        with self._lock:
            found = self._changes.pop(scenario, [])
        return sorted(found, key=lambda seen: seen.version)

    def forget(self, scenario: str) -> None:
        """Take away what a scenario left behind, without waiting for the end of it."""
        selected = {"labelSelector": f"{OF}={scenario}"}
        for kind in ("mutating", "validating"):
            path = f"{_WEBHOOKS}/{kind}webhookconfigurations"
            self.send(Request(method="DELETE", path=path, query=selected))
        for node in self.objects(scenario, "nodes"):
            name = node["metadata"]["name"]
            self.send(Request(method="DELETE", path=f"/api/v1/nodes/{name}"))
        for path in (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            "/apis/node.k8s.io/v1/runtimeclasses",
            "/apis/storage.k8s.io/v1/csinodes",
            "/api/v1/persistentvolumes",
        ):
            self.send(Request(method="DELETE", path=path, query=selected))
        self.send(
            Request(method="DELETE", path=f"/api/v1/namespaces/{scenario}")
        )  # no pod is made there now
        self.let_go(scenario)

    def let_go(self, scenario: str) -> None:
        """Delete the pods and Services of a scenario at once, whatever holds them: its namespace is not gone before."""
        for resource in ("pods", "services"):
            listing = f"/api/v1/namespaces/{scenario}/{resource}"
            for each in self.send(Request(method="GET", path=listing)).body["items"]:
                path = f"{listing}/{each['metadata']['name']}"
                if each["metadata"].get("finalizers"):
                    free = {"metadata": {"finalizers": None}}
                    self.send(Request(method="PATCH", path=path, body=free, content_type=MERGE))
                self.send(Request(method="DELETE", path=path, body={"gracePeriodSeconds": 0}))

    def _watch(self, resource: str) -> None:
        line = BY_PLURAL[resource]
        version = ""
        while not self._over.is_set():
            if not version:
                version = self._list(line)
            query = {
                "watch": "true",
                "resourceVersion": version,
                "timeoutSeconds": "5",  # so that the end of the tests is noticed
                "allowWatchBookmarks": "true",
            }
            answer = self._pool.request(
                "GET",
                f"{self._url}{_collection(line)}?{urlencode(query)}",
                headers=self._token,
                preload_content=False,
                timeout=_HANGING,
            )
            try:
                for text in answer:
                    event = json.loads(text)
                    if event["type"] == "ERROR":
                        version = ""
                        break
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self._take(resource, event["type"], event["object"])
            finally:
                answer.drain_conn()
                answer.release_conn()

    def _list(self, line: Resource) -> str:
        found = self.send(Request(method="GET", path=_collection(line), content_type=JSON)).body
        for obj in found["items"]:
            self._take(line.plural, "ADDED", obj)
        return str(found["metadata"]["resourceVersion"])

    def _take(self, resource: str, kind: str, obj: Json) -> None:
        meta = obj["metadata"]
        key = (meta.get("namespace", ""), meta["name"])
        seen = Seen(
            at=time.monotonic(),
            version=int(meta["resourceVersion"]),
            type=kind,
            resource=resource,
            object=obj,
        )
        with self._lock:
            if kind == "DELETED":
                self._objects[resource].pop(key, None)
            else:
                self._objects[resource][key] = obj
            scenario = _owner(obj)
            self._changes[scenario].append(seen)
            self._changed[scenario] = time.monotonic()


def _owner(obj: Json) -> str:
    meta = obj["metadata"]
    return str(meta.get("namespace") or (meta.get("labels") or {}).get(OF, ""))


def _collection(line: Resource) -> str:
    root = f"/apis/{line.api_version}" if line.group else f"/api/{line.version}"
    return f"{root}/{line.plural}"
