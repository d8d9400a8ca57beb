"""A zonal shift that begins and ends, played against the whole of Plimsoll in virtual time."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import pytest

from plimsoll.domain.kubernetes import RELEASED, ZONAL_SHIFT, ZONE
from plimsoll_simulation.rigs.simulated.rig import Simulation
from plimsoll_simulation.scenario.drill import read_drill
from tests.support.examples import FOLDER

type Json = dict[str, Any]

SHIFTED = "us-east-1b"
EXAMPLE = "zonal-shift.yaml"


@dataclass(frozen=True, slots=True)
class Moment:
    """A cluster as it is at a time."""

    nodes: dict[str, Json]
    """Those in the zone."""
    pods: Sequence[Json]
    added: set[str]
    """The zones of instances that were added."""

    @classmethod
    def of(cls, simulation: Simulation) -> Self:
        harbor = simulation.rig_clusters["harbor"]
        nodes, pods = (copy.deepcopy([*harbor.cluster.store.all(k)]) for k in ("nodes", "pods"))
        return cls(
            {n["metadata"]["name"]: n for n in nodes if n["metadata"]["labels"][ZONE] == SHIFTED},
            pods,
            {m.zone for m in harbor.fleet.machine.values() if m.number > m.group.size},
        )

    @property
    def tainted(self) -> list[str]:
        return [
            name
            for name, node in self.nodes.items()
            if any(taint["key"] == ZONAL_SHIFT for taint in node["spec"].get("taints", ()))
        ]

    @property
    def apps(self) -> set[str]:
        """Those with pods in the zone."""
        here = [pod for pod in self.pods if pod["spec"].get("nodeName") in self.nodes]
        return {pod["metadata"]["labels"]["app"] for pod in here}

    @property
    def released(self) -> list[Json]:
        return [pod for pod in self.pods if RELEASED in pod["metadata"].get("annotations", {})]


def played(*minutes: float, drill: Path = FOLDER / EXAMPLE) -> list[Moment]:
    """Play a drill, and return what is to be seen so many minutes after time 0."""
    found = []
    with Simulation(read_drill(drill), responder="plimsoll", seed=7) as simulation:
        simulation.prepare()
        simulation.begin()
        began = simulation.clock.now()
        for minute in minutes:
            simulation.clock.run_until(began + timedelta(minutes=minute))
            found.append(Moment.of(simulation))
    return found


@pytest.fixture(scope="module")
def example() -> list[Moment]:
    """The example before, during and after the shift."""
    return played(0.3, 14, 17)


@pytest.fixture
def changed(tmp_path):
    """Write the example with other words in it."""

    def write(old: str, new: str) -> Path:
        drill: Path = shutil.copytree(FOLDER, tmp_path / "examples") / EXAMPLE
        drill.write_text(drill.read_text().replace(old, new))
        return drill

    return write


def test_no_node_is_launched_in_the_zone_while_traffic_is_shifted_away(example):
    _, during, _ = example
    assert during.added
    assert SHIFTED not in during.added


def test_what_can_be_released_leaves_the_zone_and_what_its_volume_holds_stays(example):
    before, during, _ = example
    assert before.apps > during.apps
    assert "cart" in during.apps
    assert len(during.tainted) == len(during.nodes) > 0
    assert during.released == []


def test_in_a_practice_run_the_zone_is_tainted_and_its_pods_stay(changed):
    entry = "zonalShift: us-east-1b, for: 15m"
    before, during, after = played(0.3, 4, 17, drill=changed(entry, f"{entry}, practice: true"))
    assert len(during.tainted) == len(during.nodes) > 0
    assert during.apps == before.apps
    assert after.tainted == []


def test_when_traffic_comes_back_nothing_of_it_is_left(example):
    *_, after = example
    assert after.tainted == after.released == []
    assert not any(node["spec"].get("unschedulable") for node in after.nodes.values())


@pytest.mark.parametrize("lost", ["20s", "15m20s"], ids=["beginning", "end"])
def test_a_lost_event_of_a_shift_is_made_up_for_within_three_minutes(changed, lost):
    fault = f"{{at: {lost}, fault: notices-lost, for: 1s, fraction: 1}}"
    drill = changed("  timeline:\n", f"  timeline:\n    - {fault}\n")
    during, after = played(4, 18.5, drill=drill)
    assert len(during.tainted) == len(during.nodes) > 0
    assert after.tainted == []
