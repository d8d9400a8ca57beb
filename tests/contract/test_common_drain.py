"""The responder `drain` as rigs in wall-clock time play it: over HTTP, in threads."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.adapters.clock import SystemClock
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.serve import FakeApiServer
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_simulation.rigs.access import Access
from plimsoll_simulation.rigs.commondrain import ThreadedDrain
from tests.support.fake_clusters import a_budget, a_deployment, a_node

FAST = Settings(pod_startup=timedelta(seconds=0.05), pod_stop=timedelta(seconds=0.05))


EVENT = {
    "version": "0",
    "id": "00000000-0000-0000-0000-000000000001",
    "source": "plimsoll.drill",
    "account": "123456789012",
    "time": "2026-01-01T00:00:00Z",
    "region": "us-east-1",
    "resources": [],
    "detail-type": "EC2 Spot Instance Interruption Warning",
    "detail": {"instance-id": "i-0123456789abcdef0", "instance-action": "terminate"},
}


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    now = SystemClock().now()
    cluster = FakeCluster(now=now, settings=FAST)
    cluster.join(a_node("a"), now=now)
    cluster.apply([a_deployment("web", 2)], now=now)
    with FakeApiServer(cluster) as server:
        eventually(lambda: len(running_on(server, "a")) == 2)
        with server.lock:
            cluster.join(a_node("b"), now=SystemClock().now())
        yield server


def running_on(server: FakeApiServer, node: str) -> list[Any]:
    """Return the pods that run on a node and stay there."""
    with server.lock:
        return [
            pod
            for pod in server.cluster.store.all("pods")
            if pod["spec"].get("nodeName") == node
            and pod["status"].get("phase") == "Running"
            and not pod["metadata"].get("deletionTimestamp")
        ]


def cordoned(server: FakeApiServer, name: str) -> bool:
    with server.lock:
        nodes = server.cluster.store.all("nodes")
        return any(n["metadata"]["name"] == name and n["spec"].get("unschedulable") for n in nodes)


def eventually(holds: Any, seconds: float = 5) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.02)


def draining(server: FakeApiServer) -> ThreadedDrain:
    machine = SimpleNamespace(node="a", gone=None)
    rig_cluster = SimpleNamespace(fleet=SimpleNamespace(machine={"i-0123456789abcdef0": machine}))
    return ThreadedDrain(
        {"harbor": rig_cluster},  # type: ignore[dict-item] # what it uses of a cluster
        {"harbor": Access(url=server.url, token=server.token)},
        SystemClock(),
    )


def test_it_empties_the_node_of_a_notice_at_once(server):
    with draining(server) as drain:
        drain.notice(json.dumps(EVENT))
        eventually(lambda: cordoned(server, "a") and not running_on(server, "a"))
        eventually(lambda: len(running_on(server, "b")) == 2)
    assert drain.error is None


def test_a_blocked_eviction_is_tried_again_later_and_stopping_waits_for_none(server):
    with server.lock:
        budget = a_budget("web", "web", maxUnavailable=0)
        server.cluster.apply([budget], now=SystemClock().now())
    with draining(server) as drain:
        drain.notice(json.dumps(EVENT))
        eventually(lambda: cordoned(server, "a"))
        time.sleep(0.2)
        assert len(running_on(server, "a")) == 2
        began = time.monotonic()
    assert time.monotonic() - began < 2
    assert not [t for t in threading.enumerate() if t.name.startswith("drain ")]
    assert drain.error is None
