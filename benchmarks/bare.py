"""The least that a client can do: cordons nodes with urllib3, then evicts all their pods, and nothing else.

A bound for other benchmarks, which start it as a process of its own:

    python bare.py URL TOKEN THREADS CA NODE...

With several threads it says `ready`, waits until standard input ends, and evicts after it has cordoned: it lists the
pods once, and tries again what is put off. With one thread it cordons at once, and that is all. Nothing beyond
urllib3 is imported: one of the benchmarks measures how it starts. CA is a file; empty for HTTP.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import urllib3

TAINT = {"key": "plimsoll.dev/interruption", "value": "spot-interruption", "effect": "NoSchedule"}
CORDON = json.dumps({"spec": {"unschedulable": True, "taints": [TAINT]}})
PATIENCE = 1.0
"""Seconds until an eviction that was put off is tried again, where the answer names none."""
OK, CREATED, NOT_FOUND, PUT_OFF = 200, 201, 404, 429


class Bare:
    """A client of one API server."""

    def __init__(self, url: str, token: str, threads: int, ca: str | None) -> None:
        self._url = url
        self._threads = threads
        self._pool = urllib3.PoolManager(maxsize=threads, ca_certs=ca)
        self._headers = {"Authorization": f"Bearer {token}"}

    def cordon(self, nodes: list[str]) -> None:
        """Cordon and taint nodes."""
        self._each(self._cordon, nodes, done={OK})

    def evict(self, nodes: list[str]) -> None:
        """Evict every pod of nodes."""
        answer = self._send("GET", "/api/v1/pods?resourceVersion=0")
        there = set(nodes)
        pods = [
            pod["metadata"]
            for pod in json.loads(answer.data)["items"]
            if pod["spec"].get("nodeName") in there
        ]
        self._each(self._evict, pods, done={CREATED, NOT_FOUND})

    def _cordon(self, node: str) -> int:
        kind = "application/merge-patch+json"
        return self._send("PATCH", f"/api/v1/nodes/{node}", CORDON, kind).status

    def _evict(self, pod: dict[str, Any]) -> int:
        name = {"name": pod["name"], "namespace": pod["namespace"]}
        body = json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": name})
        path = f"/api/v1/namespaces/{pod['namespace']}/pods/{pod['name']}/eviction"
        while (answer := self._send("POST", path, body)).status == PUT_OFF:
            time.sleep(float(answer.headers.get("Retry-After", PATIENCE)))
        return answer.status

    def _send(
        self, method: str, path: str, body: str | None = None, kind: str = "application/json"
    ) -> urllib3.BaseHTTPResponse:
        headers = {**self._headers, "Content-Type": kind}
        return self._pool.request(method, self._url + path, body=body, headers=headers)

    def _each[T](self, act: Callable[[T], int], things: Iterable[T], *, done: set[int]) -> None:
        with ThreadPoolExecutor(self._threads) as workers:
            statuses = set(workers.map(act, things))
        if not statuses <= done:
            raise SystemExit(f"the cluster answered {sorted(statuses)}")


def main(arguments: list[str]) -> None:
    url, token, threads, ca, *nodes = arguments
    client = Bare(url, token, int(threads), ca or None)
    evicts = threads != "1"
    if evicts:
        print("ready", flush=True)
        sys.stdin.read()
    client.cordon(nodes)
    if evicts:
        client.evict(nodes)


if __name__ == "__main__":
    main(sys.argv[1:])
