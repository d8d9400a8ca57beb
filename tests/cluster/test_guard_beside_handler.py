"""All spot goes on a real control plane, beside a handler that evicts at the notice by the Eviction API.

The handler is the controller of the simulated rig, whose evictions the real API server answers here. Two
Services are guarded and one is not; what the handler does alone is a drill of its own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, override

import pytest

from plimsoll.domain.kubernetes import GUARD
from plimsoll_simulation.measure.report import Report
from plimsoll_simulation.rigs.simulated.other_controllers.drainer import Drainer
from plimsoll_simulation.scenario.drill import read_drill
from plimsoll_testbed.rigs.cluster.clusters import ControlPlanes
from plimsoll_testbed.rigs.emulated.rig import Emulation
from plimsoll_testbed.rigs.endpoints import Service
from tests.cluster.clients import Client, send

pytestmark = [pytest.mark.cluster, pytest.mark.long]

DRILL: Final = Path(__file__).parent / "rig" / "beside-a-handler.yaml"
GUARDED: Final[Sequence[Service]] = [("shop", "web"), ("shop", "cart")]
UNGUARDED: Final[Service] = ("shop", "api")
BUDGETS: Final = "/apis/policy/v1/poddisruptionbudgets"


@dataclass
class Seen:
    """What is seen of the cluster while the drill is played."""

    client: Client | None = None
    guards: Sequence[str] = ()
    """The guards that were there at time 0."""


@dataclass(kw_only=True)
class WatchedPlanes(ControlPlanes):
    """Real control planes with a client, who begins to send at time 0."""

    seen: Seen

    @override
    def begin(self) -> None:
        super().begin()
        plane = self.rig_clusters["harbor"].plane
        budgets = plane.transport().call("GET", BUDGETS).body["items"]
        self.seen.guards = sorted(
            budget["spec"]["selector"]["matchLabels"]["app"]
            for budget in budgets
            if budget["metadata"]["labels"][GUARD] == "true"
        )
        self.seen.client = send(plane, self.exits, [*GUARDED, UNGUARDED])


@dataclass(frozen=True, kw_only=True)
class Played:
    report: Report
    client: Client
    guards: Sequence[str]
    refused: int
    """How many pods the handler could not evict when it first tried."""

    @property
    def unguarded(self) -> Mapping[str, Any]:
        rows = self.report["workloads"]
        return next(row for row in rows if row["name"] == UNGUARDED[1])


def play(responder: str, folder: Path) -> Played:
    seen = Seen()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        with Emulation(
            read_drill(DRILL),
            clusters=partial(WatchedPlanes, seen=seen),
            rig="cluster",
            responder=responder,
            seed=0,
        ) as run:
            report = run.run()
    [handler] = run.other_controllers
    assert isinstance(handler, Drainer)
    assert seen.client is not None
    if seen.client.error is not None:
        raise seen.client.error
    refused = sum(len(drain.refused) for drain in handler.drains.values())
    return Played(report=report, client=seen.client, guards=seen.guards, refused=refused)


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return play("plimsoll", tmp_path_factory.mktemp("temporary"))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return play("none", tmp_path_factory.mktemp("temporary"))


def test_with_the_guard_no_client_loses_a_request(beside: Played):
    assert beside.guards == ["cart", "web"]
    for service in GUARDED:
        assert beside.client.lost(service) == []
    assert beside.refused >= 4, "the handler tried every guarded pod"
    assert beside.client.lost(UNGUARDED), "and took down what is not guarded"
    assert beside.report["expect"] == {"held": True, "failures": []}, beside.report["workloads"]


def test_without_the_guard_nothing_is_worse_than_with_the_handler_alone(
    beside: Played, alone: Played
):
    assert alone.guards == []
    assert len(beside.client.lost(UNGUARDED)) <= len(alone.client.lost(UNGUARDED))
    for figure in ("seconds_at_zero", "ready_replica_seconds_lost", "pods_killed"):
        assert beside.unguarded[figure] <= alone.unguarded[figure], figure
