"""All spot goes below three Services, on a real control plane: no client loses a request."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, Self, override

import pytest
import yaml

from plimsoll.adapters.kubernetes import Transport
from plimsoll_simulation.measure.report import Report
from plimsoll_simulation.rigs.threads import Threads
from plimsoll_simulation.scenario.drill import read_drill
from plimsoll_testbed.rigs.cluster.clusters import ControlPlanes
from plimsoll_testbed.rigs.controlplane import ControlPlane
from plimsoll_testbed.rigs.emulated.rig import Emulation
from plimsoll_testbed.rigs.endpoints import Service
from tests.cluster.clients import BETWEEN_REQUESTS, Client, send
from tests.cluster.installed import everything
from tests.cluster.target_health import TargetHealth

pytestmark = pytest.mark.cluster

type Json = dict[str, Any]

FOLDER: Final = Path(__file__).parent / "rig"
SERVICES: Final[Sequence[Service]] = [("shop", "web"), ("shop", "api"), ("shop", "cart")]
OPERATED: Final = ("shop", "cart")
TARGETS: Final = ("shop", "api")
"""Its pods are targets of a load balancer, and have a readiness gate."""
STOP: Final = timedelta(seconds=5)
PODS: Final = 8
"""Every one of them stands on a spot node, and has to move."""
RECONCILE_SECONDS: Final = 1.0
OURS: Final = "plimsoll"
MAY_BE_WRITTEN: Final = {"pods", "nodes", "leases", "events"}


@dataclass
class Operator(Threads):
    """Reconciles one Deployment as operators do: applies the whole of it, whatever is there."""

    api: Transport
    wanted: Json
    generations: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    @override
    def __enter__(self) -> Self:
        self.spawn(self._run, "operator")
        return self

    def _run(self) -> None:
        namespace, name = OPERATED
        while not self.ended.wait(RECONCILE_SECONDS):
            answer = self.api.call(
                "PATCH",
                f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}",
                query={"fieldManager": "operator", "force": "true"},
                body=self.wanted,
                content_type="application/apply-patch+yaml",
            )
            assert answer.status == 200, answer.body
            self.generations.append(answer.body["metadata"]["generation"])


@dataclass
class Watch:
    """What is seen of the cluster while the drill is played."""

    client: Client | None = None
    operator: Operator | None = None
    health: TargetHealth | None = None
    managed: set[str] = field(default_factory=set)
    """Resources with an object that has a `managedFields` entry of ours."""
    written: frozenset[str] = frozenset()
    replicas: dict[str, int] = field(default_factory=dict)

    def open(self, plane: ControlPlane, exits: ExitStack) -> None:
        api = plane.transport()
        exits.callback(self._close, plane)
        self.client = send(plane, exits, SERVICES)
        [wanted] = [
            manifest
            for manifest in yaml.safe_load_all((FOLDER / "three-services.yaml").read_text())
            if manifest["kind"] == "Deployment" and manifest["metadata"]["name"] == OPERATED[1]
        ]
        self.operator = exits.enter_context(Operator(api, wanted))

    def _close(self, plane: ControlPlane) -> None:
        api = plane.transport()
        self.written = plane.written()
        for resource, obj in everything(api):
            managers = {entry["manager"] for entry in obj["metadata"].get("managedFields", ())}
            if OURS in managers:
                self.managed.add(resource)
            if resource == "deployments":
                self.replicas[obj["metadata"]["name"]] = obj["spec"]["replicas"]


@dataclass(kw_only=True)
class WatchedPlanes(ControlPlanes):
    """Real control planes that a client, an operator and a watch are at work on."""

    watch: Watch

    @override
    def begin(self) -> None:
        super().begin()
        self.watch.open(self.rig_clusters["harbor"].plane, self.exits)

    @override
    def _lacking(self) -> Sequence[str]:
        """Open gates from here on: without that no pod behind one is ever Ready."""
        if self.watch.health is None:
            api = self.rig_clusters["harbor"].plane.transport()
            self.watch.health = self.exits.enter_context(TargetHealth(api, TARGETS[0]))
        return super()._lacking()


@dataclass(frozen=True, kw_only=True)
class Played:
    report: Report
    watch: Watch


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    watch = Watch()
    clusters = partial(WatchedPlanes, watch=watch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))
        drill = read_drill(FOLDER / "services.yaml")
        with Emulation(
            drill, clusters=clusters, rig="cluster", responder="plimsoll", seed=0
        ) as run:
            report = run.run()
    for thread in (watch.client, watch.operator, watch.health):
        assert thread is not None
        if thread.error is not None:
            raise thread.error
    return Played(report=report, watch=watch)


def test_a_client_that_follows_the_endpoint_slices_loses_no_request(played: Played):
    client = played.watch.client
    assert client is not None
    noticed = min(node["noticed"] for node in played.report["nodes"])
    gone = max(node["gone"] for node in played.report["nodes"])
    assert len(client.sent) > len(SERVICES) * (gone - noticed) / BETWEEN_REQUESTS / 4
    assert client.lost() == []
    assert len(client.stopped) >= PODS


def test_a_target_stops_once_the_load_balancer_calls_its_replacement_healthy(played: Played):
    client, health = played.watch.client, played.watch.health
    assert client is not None
    assert health is not None
    targets = {request.address for request in client.sent if request.service == TARGETS}
    stopped = sorted(when for address, when in client.stopped.items() if address in targets)
    replaced = sorted(health.opened.values())[len(stopped) :]
    assert len(stopped) == len(replaced) == 3
    told = [when - STOP for when in stopped]
    assert all(healthy < asked for healthy, asked in zip(replaced, told, strict=True))


def test_every_expectation_holds_and_every_pod_stops_in_order(played: Played):
    assert played.report["expect"] == {"held": True, "failures": []}
    assert played.report["settled"]


def test_nothing_is_written_but_pods_nodes_our_lease_and_events(played: Played):
    """By the API server's own audit, whoever undid it; and by what the objects say in the end."""
    assert {name.partition("/")[0] for name in played.watch.written} <= MAY_BE_WRITTEN
    assert {"pods", "pods/eviction", "nodes", "leases"} <= played.watch.written
    assert "leases" in played.watch.managed <= MAY_BE_WRITTEN


def test_an_operator_and_an_autoscaler_find_their_deployments_as_they_left_them(played: Played):
    operator = played.watch.operator
    assert operator is not None
    assert len(operator.generations) > 10
    assert set(operator.generations) == {operator.generations[0]}
    assert played.watch.replicas == {"web": 3, "api": 3, "cart": 2}
