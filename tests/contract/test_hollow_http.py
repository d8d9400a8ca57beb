"""The hollow cluster behind HTTP, as the official Kubernetes client sees it."""

from __future__ import annotations

import importlib
import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from urllib3.exceptions import HTTPError

from plimsoll.adapters.clock import SystemClock
from plimsoll_testbed.model.hollow.cluster import HollowCluster
from plimsoll_testbed.model.hollow.serve import HollowServer
from plimsoll_testbed.model.hollow.settings import Settings
from tests.support.hollows import a_budget, a_deployment, a_node

# The official client has no types: these are what its own documentation imports.
client: Any = importlib.import_module("kubernetes.client")
dynamic: Any = importlib.import_module("kubernetes.dynamic")
watch: Any = importlib.import_module("kubernetes.watch")
ApiException: Any = client.ApiException


@pytest.fixture
def server() -> Iterator[HollowServer]:
    now = SystemClock().now()
    fast = Settings(pod_startup=timedelta(seconds=0.1), pod_stop=timedelta(seconds=0.1))
    cluster = HollowCluster(now=now, settings=fast)
    cluster.join(a_node("a"), now=now)
    cluster.join(a_node("b"), now=now)
    with HollowServer(cluster) as server:
        yield server


@pytest.fixture
def api(server: HollowServer) -> Iterator[Any]:
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


def test_nodes_are_listed_and_patched(api: Any):
    core = client.CoreV1Api(api)
    assert [n.metadata.name for n in core.list_node().items] == ["a", "b"]
    taint = {"key": "plimsoll.dev/interruption", "value": "x", "effect": "NoSchedule"}
    node = core.patch_node("a", {"spec": {"unschedulable": True, "taints": [taint]}})
    assert node.spec.unschedulable
    assert [t.key for t in node.spec.taints] == ["plimsoll.dev/interruption"]


def test_the_typed_and_the_dynamic_client_both_work_and_pods_come_to_run(api: Any):
    deploy(api, a_deployment("web", 2))
    running(api, 2)
    apps = client.AppsV1Api(api)
    assert apps.read_namespaced_deployment("web", "default").status.ready_replicas == 2
    apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 3}})
    running(api, 3)
    assert client.VersionApi(api).get_code().minor == "36"


def test_an_eviction_is_created_or_refused_with_its_cause(api: Any):
    deploy(api, a_deployment("web", 2), a_budget("web", "web", maxUnavailable=1))
    pods = running(api, 2)
    core, policy = client.CoreV1Api(api), client.PolicyV1Api(api)

    def allowed() -> bool:
        status = policy.read_namespaced_pod_disruption_budget("web", "default").status
        return bool(status and status.disruptions_allowed)

    eventually(allowed)
    first, second = (p.metadata.name for p in pods)

    def evict(name: str) -> Any:
        body = client.V1Eviction(metadata=client.V1ObjectMeta(name=name, namespace="default"))
        return core.create_namespaced_pod_eviction(name, "default", body)

    evict(first)
    with pytest.raises(ApiException) as refused:
        evict(second)
    assert refused.value.status == 429
    (cause,) = json.loads(refused.value.body)["details"]["causes"]
    assert cause["reason"] == "DisruptionBudget"
    running(api, 2)
    with pytest.raises(ApiException) as missing:
        evict("nobody")
    assert missing.value.status == 404


def test_a_lease_is_held_by_one(api: Any):
    leases = client.CoordinationV1Api(api)
    body = client.V1Lease(
        metadata=client.V1ObjectMeta(name="drains"),
        spec=client.V1LeaseSpec(holder_identity="one", acquire_time=SystemClock().now()),
    )
    held = leases.create_namespaced_lease("default", body)
    with pytest.raises(ApiException) as taken:
        leases.create_namespaced_lease("default", body)
    assert taken.value.status == 409
    held.spec.holder_identity = "two"
    assert isinstance(held.spec.acquire_time, datetime)
    leases.replace_namespaced_lease("drains", "default", held)
    with pytest.raises(ApiException) as late:
        leases.replace_namespaced_lease("drains", "default", held)
    assert late.value.status == 409
    assert json.loads(late.value.body)["reason"] == "Conflict"


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


def test_a_watch_begins_with_what_there_is_and_sees_through_its_selector(api: Any):
    core = client.CoreV1Api(api)
    core.patch_node("a", {"metadata": {"labels": {"x": "1"}}})
    seen: list[tuple[str, str]] = []
    for event in watch.Watch().stream(core.list_node, label_selector="x=1", timeout_seconds=2):
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 1:
            core.patch_node("a", {"metadata": {"labels": {"x": "2"}}})
            core.patch_node("b", {"metadata": {"labels": {"x": "1"}}})
        if len(seen) == 3:
            break
    assert seen == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "b")]


def test_without_the_token_nothing_but_health_and_version_is_told(server: HollowServer):
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


def test_while_the_api_server_is_away_connections_are_reset(server: HollowServer, api: Any):
    core = client.CoreV1Api(api)
    core.list_node()
    with server.lock:
        server.cluster.take_api_away(now=SystemClock().now())
    with pytest.raises(HTTPError):
        core.list_node()
    with server.lock:
        server.cluster.bring_api_back(now=SystemClock().now())
    assert len(core.list_node().items) == 2


def test_a_port_in_use_is_an_error_and_nothing_is_left_running(server: HollowServer):
    port = int(server.url.rpartition(":")[2])
    before = threading.active_count()
    with pytest.raises(OSError, match="in use"), HollowServer(server.cluster, port=port):
        pass
    assert threading.active_count() == before


def test_bodies_that_are_not_json_are_refused(server: HollowServer):
    request = urllib.request.Request(
        f"{server.url}/api/v1/nodes",
        data=b"{",
        headers={"Authorization": f"Bearer {server.token}"},
    )
    with pytest.raises(urllib.request.HTTPError) as refused, urllib.request.urlopen(request):
        pass
    assert refused.value.code == 400
    refused.value.close()


def test_many_clients_at_once_lose_nothing(server: HollowServer, api: Any):
    core = client.CoreV1Api(api)

    def write(number: int) -> None:
        core.patch_node("a", {"metadata": {"annotations": {f"n{number}": "1"}}})

    threads = [threading.Thread(target=write, args=(i,)) for i in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(core.read_node("a").metadata.annotations) == 40
