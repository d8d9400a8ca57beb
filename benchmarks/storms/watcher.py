"""Watches an API server in a storm: nodes, pods, and requests of a client that follows the EndpointSlices.

A process of its own, so that what it costs can be told, and what others do in Python does not hold
it up:

    python watcher.py KUBECONFIG NODES PODS

It says `ready` once it has seen that many nodes, that many pods on nodes, and an endpoint for each of them. Then it
reads lines: each is a pod that stopped running, as JSON, which kubelets know sooner than the API
server. When there are no more it prints what it saw as JSON, in seconds since the epoch, and ends.

No program answers on a simulated node. A request counts as answered if the pod of its address runs
for another tenth of a second.
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from plimsoll_testbed.rigs.endpoints import ReadyEndpoints
from plimsoll_testbed.rigs.follower import Follower

POLL_SECONDS = 0.1
BETWEEN_REQUESTS = 0.5
"""To one Service."""
ANSWER_SECONDS = 0.1


class Watcher:
    """What is seen; each watch calls it from a thread of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.nodes: set[str] = set()
        self.cordoned: dict[str, float] = {}
        self.on_node: dict[str, set[str]] = {}
        self.empty: dict[str, float] = {}
        self.changes = 0
        self.serving: dict[str, set[str]] = defaultdict(set)
        """Workload -> the uids of its pods that are Ready, run, and were not asked to stop."""
        self.services: dict[str, tuple[str, str]] = {}
        """Workload -> namespace and name of its Service."""
        self.wanted: dict[str, int] = {}
        """Workload -> how many served when the storm began."""
        self.missing: list[tuple[float, int]] = []
        """From each moment on, how many of all pods that are wanted did not serve."""
        self.stops: dict[str, float] = {}
        """Address -> when its pod stopped running."""
        self._stopped: set[str] = set()
        self.requests: list[tuple[float, str | None]] = []
        """When, and to which address; None where a Service had no ready endpoint."""

    @property
    def bound(self) -> int:
        """How many pods are on nodes."""
        with self._lock:
            return sum(map(len, self.on_node.values()))

    @property
    def workloads(self) -> list[str]:
        """The workloads with a pod that serves."""
        with self._lock:
            return [name for name, pods in self.serving.items() if pods]

    def begin(self) -> None:
        """Take what serves now for what is wanted."""
        with self._lock:
            self.wanted = {name: len(pods) for name, pods in self.serving.items()}
            self.missing = [(time.time(), 0)]

    def node(self, change: str, node: dict[str, Any]) -> None:
        """Take in a change of a node; its first cordon counts."""
        name, now = node["metadata"]["name"], time.time()
        self.changes += 1
        if change == "DELETED":
            return
        self.nodes.add(name)
        if node["spec"].get("unschedulable"):
            self.cordoned.setdefault(name, now)

    def pod(self, change: str, pod: dict[str, Any]) -> None:
        """Take in a change of a pod; a node is empty from its last pod's end on."""
        now, node, uid = time.time(), pod["spec"].get("nodeName"), pod["metadata"]["uid"]
        self.changes += 1
        if node is None:
            return
        over = change == "DELETED" or pod["status"].get("phase") in {"Succeeded", "Failed"}
        ready = any(
            condition["type"] == "Ready" and condition["status"] == "True"
            for condition in pod["status"].get("conditions", ())
        )
        serves = ready and not over and "deletionTimestamp" not in pod["metadata"]
        app = pod["metadata"].get("labels", {}).get("app", "")
        with self._lock:
            self.services.setdefault(app, (pod["metadata"]["namespace"], app))
            self._serve(app, uid, now, serves=serves)
            there = self.on_node.setdefault(node, set())
            if not over:
                there.add(uid)
                self.empty.pop(node, None)
            elif there:
                there.discard(uid)
                if not there:
                    self.empty[node] = now

    def stopped(self, pod: dict[str, Any]) -> None:
        """Take in that a pod stopped running."""
        with self._lock:
            self.stops[pod["address"]] = pod["at"]
            self._stopped.add(pod["uid"])
            self._serve(pod["app"], pod["uid"], pod["at"], serves=False)

    def request(self, address: str | None) -> None:
        """Note a request of the client."""
        self.requests.append((time.time(), address))

    def lost(self) -> list[float]:
        """Return when each request was sent that got no answer."""
        return [
            at
            for at, address in self.requests
            if address is None or self.stops.get(address, at + 1) < at + ANSWER_SECONDS
        ]

    def _serve(self, app: str, uid: str, now: float, *, serves: bool) -> None:
        pods = self.serving[app]
        before = len(pods)
        if serves and uid not in self._stopped:
            pods.add(uid)
        else:
            pods.discard(uid)
        if self.missing and len(pods) != before:
            wanted = self.wanted.get(app, 0)
            change = max(0, wanted - len(pods)) - max(0, wanted - before)
            self.missing.append((now, self.missing[-1][1] + change))


def send(endpoints: ReadyEndpoints, watcher: Watcher) -> None:
    """Send requests to all Services for ever, each to the next of its ready endpoints."""
    services = sorted(watcher.wanted)
    for turn in itertools.count():
        for number, name in enumerate(services):
            ready = endpoints.ready(watcher.services[name])
            watcher.request(ready[(turn + number) % len(ready)] if ready else None)
        time.sleep(BETWEEN_REQUESTS)


def main(kubeconfig: str, nodes: str, pods: str) -> None:
    seen = Watcher()
    Follower(Path(kubeconfig), "/api/v1/nodes", seen.node).start()
    Follower(Path(kubeconfig), "/api/v1/pods", seen.pod).start()
    with ReadyEndpoints(Path(kubeconfig)) as endpoints:
        while (
            len(seen.nodes) < int(nodes)
            or seen.bound < int(pods)
            or sum(len(endpoints.ready(seen.services[name])) for name in seen.workloads) < int(pods)
        ):
            time.sleep(POLL_SECONDS)
        seen.begin()
        threading.Thread(target=send, args=(endpoints, seen), daemon=True).start()
        before = seen.changes
        print("ready", flush=True)
        began, spent = time.monotonic(), time.process_time()
        for line in sys.stdin:
            seen.stopped(json.loads(line))
        result = {
            "cordoned": seen.cordoned,
            "empty": seen.empty,
            "pods": {node: len(there) for node, there in seen.on_node.items()},
            "missing": seen.missing,
            "requests": len(seen.requests),
            "lost": seen.lost(),
            "changes": seen.changes - before,
            "busy_seconds": time.process_time() - spent,
            "seconds": time.monotonic() - began,
        }
        print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
