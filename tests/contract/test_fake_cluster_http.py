"""The fake cluster behind HTTP, as the official Kubernetes client sees it."""

from __future__ import annotations

import importlib
import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from urllib3.exceptions import HTTPError

from plimsoll.adapters.clock import SystemClock
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.serve import FakeApiServer
from plimsoll_simulation.fake_cluster.settings import Settings
from tests.support.fake_clusters import a_deployment, a_node

# The official client has no types: these are what its own documentation imports.
client: Any = importlib.import_module("kubernetes.client")
dynamic: Any = importlib.import_module("kubernetes.dynamic")
watch: Any = importlib.import_module("kubernetes.watch")


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    now = SystemClock().now()
    fast = Settings(pod_startup=timedelta(seconds=0.1), pod_stop=timedelta(seconds=0.1))
    cluster = FakeCluster(now=now, settings=fast)
    cluster.join(a_node("a"), now=now)
    cluster.join(a_node("b"), now=now)
    with FakeApiServer(cluster) as server:
        yield server


@pytest.fixture
def api(server: FakeApiServer) -> Iterator[Any]:
    configuration = client.Configuration(host=server.url)
    configuration.api_key = {"authorization": f"Bearer {server.token}"}
    configuration.retries = False
    with client.ApiClient(configuration) as api:
        yield api
        api.rest_client.pool_manager.clear()


def eventually(holds: Any, seconds: float = 5) -> Any:
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.02)
    return found


def running(api: Any, count: int) -> list[Any]:
    core = client.CoreV1Api(api)

    def ready() -> list[Any]:
        pods = core.list_namespaced_pod("default", label_selector="app=web").items
        interrupted = [
            p for p in pods if p.status.phase == "Running" and not p.metadata.deletion_timestamp
        ]
        return interrupted if len(interrupted) == count else []

    return list(eventually(ready))


def deploy(api: Any, *objects: Any) -> None:
    dynamic_client = dynamic.DynamicClient(api)
    for obj in objects:
        line = dynamic_client.resources.get(api_version=obj["apiVersion"], kind=obj["kind"])
        dynamic_client.create(line, body=obj, namespace="default")


def test_the_typed_and_the_dynamic_client_both_work_and_pods_come_to_run(api: Any):
    deploy(api, a_deployment("web", 2))
    running(api, 2)
    apps = client.AppsV1Api(api)
    # The controller counts its pods after they changed, as a real one does.
    eventually(lambda: apps.read_namespaced_deployment("web", "default").status.ready_replicas == 2)
    apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 3}})
    running(api, 3)
    assert client.VersionApi(api).get_code().minor == "37"


def test_a_watch_tells_what_changes_from_a_version_on(api: Any):
    core = client.CoreV1Api(api)
    version = core.list_node().metadata.resource_version
    seen: list[tuple[str, str]] = []

    def follow() -> None:
        stream = watch.Watch().stream(core.list_node, resource_version=version, timeout_seconds=1)
        seen.extend((e["type"], e["object"].metadata.name) for e in stream)

    thread = threading.Thread(target=follow)
    thread.start()
    time.sleep(0.2)
    core.patch_node("a", {"metadata": {"labels": {"x": "1"}}})
    core.delete_node("b")
    thread.join()
    assert seen == [("MODIFIED", "a"), ("DELETED", "b")]


def test_without_the_token_nothing_but_health_and_version_is_told(server: FakeApiServer):
    with urllib.request.urlopen(f"{server.url}/readyz") as answer:
        assert answer.status == 200
    with (
        pytest.raises(urllib.request.HTTPError) as refused,
        urllib.request.urlopen(f"{server.url}/api/v1/nodes"),
    ):
        pass
    assert refused.value.code == 401
    assert json.load(refused.value)["reason"] == "Unauthorized"
    refused.value.close()


def test_while_the_api_server_is_away_connections_are_reset(server: FakeApiServer, api: Any):
    core = client.CoreV1Api(api)
    core.list_node()
    with server.lock:
        server.cluster.take_api_away(now=SystemClock().now())
    with pytest.raises(HTTPError):
        core.list_node()
    with server.lock:
        server.cluster.bring_api_back(now=SystemClock().now())
    assert len(core.list_node().items) == 2
