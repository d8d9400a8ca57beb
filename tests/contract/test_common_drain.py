"""The responder `drain` as the emulated rig plays it: over HTTP, in threads, fed by a queue."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.adapters.clock import SystemClock
from plimsoll_testbed.model.hollow.cluster import HollowCluster
from plimsoll_testbed.model.hollow.serve import HollowServer
from plimsoll_testbed.model.hollow.settings import Settings
from plimsoll_testbed.rigs.access import Access
from plimsoll_testbed.rigs.emulated.commondrain import CommonDrain
from tests.support.hollows import a_budget, a_deployment, a_node

FAST = Settings(pod_startup=timedelta(seconds=0.05), pod_stop=timedelta(seconds=0.05))


@dataclass
class Bus:
    """Stands for the emulator: a queue that its rule fills."""

    bodies: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)

    def client(self, service: str) -> Any:
        return self

    def create_queue(self, **_: Any) -> Any:
        return {"QueueUrl": "queue"}

    def set_queue_attributes(self, **_: Any) -> None:
        pass

    def put_rule(self, **asked: Any) -> None:
        self.rules.append(asked["EventPattern"])

    def put_targets(self, **_: Any) -> None:
        pass

    def receive_message(self, **_: Any) -> Any:
        if not self.bodies:
            time.sleep(0.01)
            return {}
        return {"Messages": [{"Body": self.bodies.pop(0), "ReceiptHandle": "1"}]}

    def delete_message(self, **_: Any) -> None:
        pass

    def notice(self, instance: str) -> None:
        event = {
            "version": "0",
            "id": "00000000-0000-0000-0000-000000000001",
            "source": "plimsoll.drill",
            "account": "123456789012",
            "time": "2026-01-01T00:00:00Z",
            "region": "us-east-1",
            "resources": [],
            "detail-type": "EC2 Spot Instance Interruption Warning",
            "detail": {"instance-id": instance, "instance-action": "terminate"},
        }
        self.bodies.append(json.dumps(event))


@pytest.fixture
def server() -> Iterator[HollowServer]:
    now = SystemClock().now()
    cluster = HollowCluster(now=now, settings=FAST)
    cluster.join(a_node("a"), now=now)
    cluster.apply([a_deployment("web", 2)], now=now)
    with HollowServer(cluster) as server:
        eventually(lambda: len(running_on(server, "a")) == 2)
        with server.lock:
            cluster.join(a_node("b"), now=SystemClock().now())
        yield server


def running_on(server: HollowServer, node: str) -> list[Any]:
    """Return the pods that run on a node and stay there."""
    with server.lock:
        return [
            pod
            for pod in server.cluster.store.all("pods")
            if pod["spec"].get("nodeName") == node
            and pod["status"].get("phase") == "Running"
            and not pod["metadata"].get("deletionTimestamp")
        ]


def cordoned(server: HollowServer, name: str) -> bool:
    with server.lock:
        nodes = server.cluster.store.all("nodes")
        return any(n["metadata"]["name"] == name and n["spec"].get("unschedulable") for n in nodes)


def eventually(holds: Any, seconds: float = 5) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.02)


def polling(bus: Bus, server: HollowServer) -> CommonDrain:
    machine = SimpleNamespace(node="a", gone=None)
    rig_cluster = SimpleNamespace(fleet=SimpleNamespace(machine={"i-0123456789abcdef0": machine}))
    return CommonDrain(
        bus,  # type: ignore[arg-type] # what it uses of the emulator
        {"harbor": rig_cluster},  # type: ignore[dict-item] # what it uses of a cluster
        {"harbor": Access(url=server.url, token=server.token)},
        SystemClock(),
    )


def test_it_hears_drills_on_the_bus_and_empties_the_node_at_once(server):
    bus = Bus()
    with polling(bus, server) as drain:
        bus.notice("i-0123456789abcdef0")
        eventually(lambda: cordoned(server, "a") and not running_on(server, "a"))
        eventually(lambda: len(running_on(server, "b")) == 2)
    assert bus.rules == ['{"source": ["plimsoll.drill"]}']
    assert drain.error is None


def test_a_blocked_eviction_is_tried_again_later_and_stopping_waits_for_none(server):
    with server.lock:
        budget = a_budget("web", "web", maxUnavailable=0)
        server.cluster.apply([budget], now=SystemClock().now())
    bus = Bus()
    with polling(bus, server) as drain:
        bus.notice("i-0123456789abcdef0")
        eventually(lambda: cordoned(server, "a"))
        time.sleep(0.2)
        assert len(running_on(server, "a")) == 2
        began = time.monotonic()
    assert time.monotonic() - began < 2
    assert not [t for t in threading.enumerate() if t.name.startswith(("drain ", "common drain"))]
    assert drain.error is None
