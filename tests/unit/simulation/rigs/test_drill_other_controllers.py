"""Other controllers in a simulated drill: what each does to a cluster, whoever responds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from plimsoll_simulation.rigs.simulated.rig import Simulation
from plimsoll_simulation.storms import read_storm
from plimsoll_simulation.storms.workload import CUSTOM, Workload
from tests.support.storms import WEB, a_storm

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


class Cluster:
    """The cluster of a storm that is over, in which other controllers go on."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.rig_cluster = simulation.rig_clusters["harbor"]

    def send(self, method: str, path: str, body: dict[str, Any] | None = None) -> None:
        kind, now = "application/merge-patch+json", self.simulation.clock.now()
        cluster = self.rig_cluster.cluster
        assert cluster.handle(method, path, None, body, kind, now=now).status < 300
        self.simulation.clock.touch(cluster)

    def wait(self, seconds: float) -> None:
        self.simulation.clock.run_until(self.simulation.clock.now() + timedelta(seconds=seconds))

    @property
    def replicas(self) -> int:
        web = self.rig_cluster.get("deployments", "default", "web")
        assert web is not None
        return int(web["spec"]["replicas"])

    @property
    def pods(self) -> list[str]:
        return sorted(pod["metadata"]["name"] for pod in self.rig_cluster.all("pods"))


@contextmanager
def played(workload: Workload, *other_controllers: str) -> Iterator[Cluster]:
    storm = a_storm(workloads=(workload,), events=(), other_controllers=other_controllers)
    simulation = Simulation(read_storm(storm), responder="none", seed=1)
    try:
        simulation.run()
        yield Cluster(simulation)
    finally:
        simulation.close()


@pytest.mark.parametrize(
    ("other_controllers", "operated", "after"),
    [
        ((), False, (5, 5)),
        (("gitops",), False, (5, 2)),
        (("gitops",), True, (2, 2)),  # the operator, which is drawn where something has one
    ],
)
def test_a_count_that_somebody_changed_is_set_back(other_controllers, operated, after):
    with played(replace(WEB, operated=operated), *other_controllers) as cluster:
        cluster.send("PATCH", f"{DEPLOYMENTS}/web", {"spec": {"replicas": 5}})
        seen = []
        for seconds in (6, 60):
            cluster.wait(seconds)
            seen.append(cluster.replicas)
        assert tuple(seen) == after


def test_gitops_leaves_a_count_to_the_autoscaler_that_holds_it():
    with played(replace(WEB, autoscaled=(2, 4)), "gitops") as cluster:
        cluster.send("PATCH", f"{DEPLOYMENTS}/web", {"spec": {"replicas": 4, "paused": True}})
        cluster.wait(70)
        assert cluster.replicas == 4


def test_an_operator_makes_the_pods_of_its_custom_resource_anew():
    with played(replace(WEB, kind=CUSTOM)) as cluster:
        assert cluster.pods == ["web-0", "web-1"]
        cluster.send("DELETE", "/api/v1/namespaces/default/pods/web-1")
        cluster.wait(4)
        assert cluster.pods == ["web-0"]
        cluster.wait(6)
        assert cluster.pods == ["web-0", "web-1"]


@pytest.mark.parametrize(("cpu", "held"), [(100, "100m"), (700, "700m"), (3000, "450m")])
def test_pods_are_resized_in_place_where_their_nodes_have_room(cpu: int, held: str):
    with played(replace(WEB, resized_cpu=cpu)) as cluster:
        before = cluster.pods
        cluster.wait(65)
        statuses = [
            pod["status"]["containerStatuses"][0] for pod in cluster.rig_cluster.all("pods")
        ]
        assert cluster.pods == before
        assert [status["allocatedResources"]["cpu"] for status in statuses] == [held, held]


@pytest.mark.parametrize(
    ("usage", "seconds", "replicas"),
    [(50, 120, 2), (40, 120, 2), (80, 16, 4), (80, 120, 5), (20, 120, 2)],
)
def test_an_autoscaler_follows_the_usage_of_its_pods_within_its_bounds(usage, seconds, replicas):
    with played(replace(WEB, autoscaled=(2, 5), usage_percent=50), "hpa") as cluster:
        for pod in cluster.pods:
            said = {"metadata": {"annotations": {"drill.plimsoll.dev/usage": f"{usage}%"}}}
            cluster.send("PATCH", f"/api/v1/namespaces/default/pods/{pod}", said)
        cluster.wait(seconds)
        assert cluster.replicas == replicas


@pytest.mark.parametrize(("usage", "replicas"), [(60, 6), (83, 6), (85, 7)])
def test_pods_that_start_count_as_idle_for_an_autoscaler_before_it_scales_up(usage, replicas):
    """As tests/cluster/test_hpa.py sees it of the real one, which rounds 332% of six pods down to 55%."""
    web = replace(WEB, replicas=4, autoscaled=(2, 9), usage_percent=50, startup_seconds=60)
    with played(web, "hpa") as cluster:
        for pod in cluster.pods:
            said = {"metadata": {"annotations": {"drill.plimsoll.dev/usage": f"{usage}%"}}}
            cluster.send("PATCH", f"/api/v1/namespaces/default/pods/{pod}", said)
        cluster.send("PATCH", f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 6}})
        cluster.wait(40)
        assert cluster.replicas == replicas
