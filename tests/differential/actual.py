"""The real control plane as a side: many scenarios share one, each in a namespace of its own."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

import urllib3

from plimsoll.hollow.conditions import condition
from plimsoll.hollow.controllers.kubelet import STOP
from plimsoll.hollow.resources import BY_PLURAL, Resource
from tests.differential.bench import FOREVER
from tests.differential.scenario import JSON, Json, Request
from tests.differential.sides import OF, SEEN, USER, Answer, Seen

_QUIET = 1.6
_LONGEST = 60.0
_HANGING = 15.0
_OBSERVED = ("deployments", "replicasets", "statefulsets", "daemonsets", "poddisruptionbudgets")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where the API server is, and how to be let in."""

    url: str
    token: str
    ca: str
    """The certificates that sign the server's, as PEM."""


class ControlPlane:
    """Requests to one API server, and a cache of its objects that watches keep up to date."""

    def __init__(self, endpoint: Endpoint) -> None:
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

    def send(self, request: Request) -> Answer:
        """Send one request and read its answer whole."""
        path = quote(request.path, safe="/:")
        query = f"?{urlencode(request.query)}" if request.query else ""
        found = self._pool.request(
            request.method,
            f"{self._url}{path}{query}",
            body=None if request.body is None else json.dumps(request.body),
            headers={**self._token, "Content-Type": request.content_type},
            timeout=30,
        )
        return Answer(status=found.status, body=json.loads(found.data), headers=dict(found.headers))

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
        for node in self.objects(scenario, "nodes"):
            name = node["metadata"]["name"]
            self.send(Request(method="DELETE", path=f"/api/v1/nodes/{name}"))
        selected = {"labelSelector": f"{OF}={scenario}"}
        for path in (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            "/api/v1/persistentvolumes",
        ):
            self.send(Request(method="DELETE", path=path, query=selected))
        for pod in self.objects(scenario, "pods"):
            name = pod["metadata"]["name"]
            path = f"/api/v1/namespaces/{scenario}/pods/{name}"
            self.send(Request(method="DELETE", path=path, body={"gracePeriodSeconds": 0}))
        self.send(Request(method="DELETE", path=f"/api/v1/namespaces/{scenario}"))

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


class ActualSide:
    """One scenario on the real control plane."""

    instant = 0.4

    def __init__(self, plane: ControlPlane, scenario: str) -> None:
        self._plane = plane
        self._scenario = scenario
        namespace = {"metadata": {"name": scenario}}
        made = plane.send(Request(method="POST", path="/api/v1/namespaces", body=namespace))
        if made.status != 201:
            raise RuntimeError(f"namespace {scenario}: {made.body['message']}")

    def request(self, request: Request) -> Answer:
        answer = self._plane.send(request)
        self._plane.touch(self._scenario)
        return answer

    def settle(self, seconds: float) -> None:
        self._plane.touch(self._scenario)
        time.sleep(seconds)
        end = time.monotonic() + _LONGEST
        while time.monotonic() < end:
            left = _QUIET - self._plane.quiet_for(self._scenario)
            if left <= 0 and not self._moving():
                break
            time.sleep(max(left, 0.1))

    def _moving(self) -> bool:
        """Whether something is under way that will be seen, however slow the machine is."""
        if any(condition(node, "Ready") is None for node in self.objects("nodes")):
            return True
        if any(map(_starts_or_stops, self.objects("pods"))):
            return True
        return any(map(_rolls, self.objects("daemonsets"))) or any(
            obj["metadata"].get("generation", 0)
            > obj.get("status", {}).get("observedGeneration", 0)
            for resource in _OBSERVED
            for obj in self.objects(resource)
        )

    def objects(self, resource: str) -> Sequence[Json]:
        return self._plane.objects(self._scenario, resource)

    def changes(self) -> Sequence[Seen]:
        return self._plane.changes(self._scenario)

    def forget(self) -> None:
        """Take away what the scenario left behind."""
        self._plane.forget(self._scenario)


def _starts_or_stops(pod: Json) -> bool:
    """Whether a pod is about to be looked at by the scheduler, or on its way up or down."""
    status = pod.get("status") or {}
    if "deletionTimestamp" in pod["metadata"]:
        return (pod["metadata"].get("annotations") or {}).get(STOP) != FOREVER
    if status.get("phase") == "Pending":
        return "nodeName" in pod["spec"] or not status.get("conditions")
    return False


def _rolls(daemonset: Json) -> bool:
    """Whether a DaemonSet is not through with an update: it rests for seconds between nodes."""
    status = daemonset.get("status") or {}
    if daemonset["spec"]["updateStrategy"]["type"] != "RollingUpdate":
        return False
    return bool(status.get("updatedNumberScheduled", 0) < status.get("desiredNumberScheduled", 0))


def _owner(obj: Json) -> str:
    meta = obj["metadata"]
    return str(meta.get("namespace") or (meta.get("labels") or {}).get(OF, ""))


def _collection(line: Resource) -> str:
    root = f"/apis/{line.api_version}" if line.group else f"/api/{line.version}"
    return f"{root}/{line.plural}"
