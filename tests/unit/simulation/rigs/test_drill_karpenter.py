"""The simulated Karpenter keeps the contract that the program itself keeps (tests/cluster/test_karpenter.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

import pytest

from plimsoll_simulation.rigs.simulated.rig import Simulation
from plimsoll_simulation.storms import read_storm
from plimsoll_simulation.storms.workload import Workload
from tests.support.karpenters import KarpenterContract, Scene, protection
from tests.support.storms import WEB, a_batch, a_group, a_storm

NOTICE: Final = timedelta(seconds=10)
"""When the drill gives notice, after time 0."""
LOOK: Final = timedelta(seconds=0.1)


@dataclass(slots=True)
class FakeCluster:
    """A drill of the simulated rig."""

    simulation: Simulation
    node: str = "spot-1-1"

    def interrupt(self) -> None:
        self._advance(NOTICE)

    def until(self, holds: Callable[[], object], seconds: float) -> None:
        end = self.simulation.clock.now() + timedelta(seconds=seconds)
        while not holds():
            assert self.simulation.clock.now() < end, f"not so after {seconds} s"
            self._advance(LOOK)

    def stays(self, holds: Callable[[], object], seconds: float) -> None:
        end = self.simulation.clock.now() + timedelta(seconds=seconds)
        while self.simulation.clock.now() < end:
            assert holds()
            self._advance(LOOK)

    def nodes(self) -> Sequence[dict[str, Any]]:
        nodes = self.simulation.rig_clusters["harbor"].all("nodes")
        return [node for node in nodes if node["metadata"]["name"].startswith("spot-1")]

    def staying(self, node: str) -> Sequence[str]:
        return [
            pod["metadata"]["labels"]["app"]
            for pod in self.simulation.rig_clusters["harbor"].on_node(node)
            if "deletionTimestamp" not in pod["metadata"]
        ]

    def open_budget(self) -> None:
        path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web"
        opened = {"spec": {"maxUnavailable": 1}}
        self._patch(path, opened)

    def protect(self, seconds: float) -> None:
        (pod,) = self.simulation.rig_clusters["harbor"].on_node(self.node)
        path = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}"
        self._patch(path, protection(pod, self.simulation.clock.now(), seconds))

    def scale(self, replicas: int) -> None:
        path = "/apis/apps/v1/namespaces/default/deployments/web"
        self._patch(path, {"spec": {"replicas": replicas}})

    def _patch(self, path: str, body: dict[str, Any]) -> None:
        self.simulation.rig_clusters["harbor"].call(
            "PATCH", path, body, "application/merge-patch+json"
        )

    def _advance(self, span: timedelta) -> None:
        clock = self.simulation.clock
        clock.run_until(clock.now() + span)


def fake_cluster(web: Workload, most: int = 4) -> Iterator[FakeCluster]:
    spot = a_group("spot-1", "spot").model_copy(update={"kind": "karpenter", "max": most})
    storm = a_storm(
        groups=(spot,),
        workloads=(replace(web, replicas=1, cpu=1900),),
        events=(a_batch("spot-1", 1, notice="spot-interruption"),),
        other_controllers=("karpenter",),
    )
    simulation = Simulation(read_storm(storm), responder="none", seed=1)
    try:
        simulation.prepare()
        simulation.begin()
        yield FakeCluster(simulation)
    finally:
        simulation.close()


class TestTheSimulatedController(KarpenterContract):
    @pytest.fixture
    def scene(self) -> Iterator[Scene]:
        yield from fake_cluster(WEB)

    @pytest.fixture
    def full(self) -> Iterator[Scene]:
        yield from fake_cluster(WEB, most=1)

    @pytest.fixture
    def held(self) -> Iterator[Scene]:
        yield from fake_cluster(replace(WEB, budget=("maxUnavailable", 0)))
