"""Watches nodes and pods of an API server, and says when each node was cordoned and became empty.

A process of its own, so that what it costs can be told, and what others do in Python does not hold
it up:

    python watcher.py KUBECONFIG NODES PODS

It says `ready` once it has seen that many nodes, and that many pods on nodes. When its standard
input ends it prints what it saw as JSON, in seconds since the epoch, and ends.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from plimsoll_testbed.rigs.follower import Follower

POLL_SECONDS = 0.1


class Watcher:
    """What is seen; its two watches call it from a thread each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.nodes: set[str] = set()
        self.cordoned: dict[str, float] = {}
        self.on_node: dict[str, set[str]] = {}
        self.empty: dict[str, float] = {}
        self.changes = 0

    @property
    def bound(self) -> int:
        """How many pods are on nodes."""
        with self._lock:
            return sum(map(len, self.on_node.values()))

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
        now, node = time.time(), pod["spec"].get("nodeName")
        self.changes += 1
        if node is None:
            return
        over = change == "DELETED" or pod["status"].get("phase") in {"Succeeded", "Failed"}
        with self._lock:
            there = self.on_node.setdefault(node, set())
            if not over:
                there.add(pod["metadata"]["uid"])
                self.empty.pop(node, None)
            elif there:
                there.discard(pod["metadata"]["uid"])
                if not there:
                    self.empty[node] = now


def main(kubeconfig: str, nodes: str, pods: str) -> None:
    seen = Watcher()
    Follower(Path(kubeconfig), "/api/v1/nodes", seen.node).start()
    Follower(Path(kubeconfig), "/api/v1/pods", seen.pod).start()
    while len(seen.nodes) < int(nodes) or seen.bound < int(pods):
        time.sleep(POLL_SECONDS)
    before = seen.changes
    print("ready", flush=True)
    began, spent = time.monotonic(), time.process_time()
    sys.stdin.read()
    result = {
        "cordoned": seen.cordoned,
        "empty": seen.empty,
        "pods": {node: len(there) for node, there in seen.on_node.items()},
        "changes": seen.changes - before,
        "busy_seconds": time.process_time() - spent,
        "seconds": time.monotonic() - began,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
