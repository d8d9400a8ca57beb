"""The example of GPU pools on a real control plane: its objects are taken, and its quotas hold."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

import pytest

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes.transport import Transport
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll_batch.adapters.kubernetes.cluster import KubernetesQueues
from plimsoll_batch.domain.names import CONFIGURATION, CONFIGURATION_KEY
from plimsoll_batch.services.queues import QueueService
from plimsoll_simulation.fake_cluster.resources import path_of
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_testbed.rigs.controlplane import ControlPlane
from plimsoll_testbed.rigs.gangs.play import Silent
from tests.cluster.installed import PATIENCE
from tests.support.fake_clusters import Json
from tests.support.gpu_tenancy import POOL, nodes, objects

pytestmark = pytest.mark.cluster

SPOT_GROUP: Final = {"spread.plimsoll.dev/1": "spot-1"}
"""What placement writes on the nodes of time-sliced-spot."""


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    times = Settings(pod_startup=timedelta(seconds=1), pod_stop=timedelta(seconds=0.5))
    with ControlPlane(settings=times) as plane:
        data = {CONFIGURATION_KEY: json.dumps(objects("queues")[0])}
        meta = {"name": CONFIGURATION, "namespace": "plimsoll"}
        api = plane.transport()
        create(api, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "plimsoll"}})
        create(api, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})
        create(api, *objects("namespaces"))
        for node in nodes():
            if node["metadata"]["name"].startswith("time-sliced-spot"):
                node["metadata"]["labels"] |= SPOT_GROUP
            plane.join(node)
        yield plane


def create(api: Transport, *bodies: Json) -> None:
    for body in bodies:
        path, _ = path_of(body)
        answer = api.call("POST", path, body=body, content_type="application/json")
        assert answer.status == 201, answer.body


def standing(api: Transport) -> Counter[tuple[str, str]]:
    """Return how many pods of each workload stand in each pool."""
    pool = {node["metadata"]["name"]: node["metadata"]["labels"][POOL] for node in nodes()}
    found: Counter[tuple[str, str]] = Counter()
    for pod in api.call("GET", "/api/v1/pods").body["items"]:
        labels: Any = pod["metadata"]["labels"]
        name = labels.get("batch.kubernetes.io/job-name") or labels["app"]
        if "nodeName" in pod["spec"] and "deletionTimestamp" not in pod["metadata"]:
            found[name, pool[pod["spec"]["nodeName"]]] += 1
    return found


def test_jobs_start_by_quota_and_every_pod_stands_in_its_pool(plane: ControlPlane):
    api, clock, workers = plane.transport(), SystemClock(), ThreadWorkers()
    service = QueueService(
        name="harbor",
        cluster=KubernetesQueues.of(plane.transport("admin"), "harbor", clock, workers),
        clock=clock,
        workers=workers,
        telemetry=Silent(),
    )
    serving = {("chat", "shared"): 2, ("rare", "time-sliced"): 2, ("train", "research"): 2}

    def planned_until(jobs: dict[tuple[str, str], int]) -> None:
        end = time.monotonic() + PATIENCE
        while (seen := standing(api)) != serving | jobs:
            assert time.monotonic() < end, seen
            service.run(holder="test", seconds=2, cycle_seconds=0.5)

    create(api, *objects("serving"), *objects("jobs"))
    planned_until({("sweep-a", "shared"): 8, ("sweep-b", "shared"): 4})
    create(api, *objects("reclaim"))
    planned_until({("sweep-a", "shared"): 8, ("embed", "shared"): 4})
    workers.close()
