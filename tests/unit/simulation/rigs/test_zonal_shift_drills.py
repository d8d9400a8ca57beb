"""A zonal shift that begins and ends, played against the whole of Plimsoll in virtual time."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from plimsoll.domain.kubernetes import RELEASED, ZONAL_SHIFT, ZONE
from plimsoll_simulation.rigs.simulated.rig import Simulation
from plimsoll_simulation.scenario.drill import read_drill
from tests.support.examples import FOLDER

type Json = dict[str, Any]

SHIFTED = "us-east-1b"


@pytest.fixture
def played():
    """Play the example until so many minutes after time 0, and return the simulation."""
    simulations: list[Simulation] = []

    def play(minutes: float, drill: Path = FOLDER / "zonal-shift.yaml") -> Simulation:
        simulation = Simulation(read_drill(drill), responder="plimsoll", seed=7)
        simulations.append(simulation)
        simulation.__enter__()
        simulation.prepare()
        simulation.begin()
        simulation.clock.run_until(simulation.clock.now() + timedelta(minutes=minutes))
        return simulation

    yield play
    for simulation in simulations:
        simulation.__exit__(None, None, None)


def all_of(simulation: Simulation, kind: str) -> list[Json]:
    return [*simulation.rig_clusters["harbor"].cluster.store.all(kind)]


def of_zone(simulation: Simulation) -> dict[str, Json]:
    nodes = all_of(simulation, "nodes")
    return {n["metadata"]["name"]: n for n in nodes if n["metadata"]["labels"][ZONE] == SHIFTED}


def tainted(simulation: Simulation) -> list[str]:
    return [
        name
        for name, node in of_zone(simulation).items()
        if any(taint["key"] == ZONAL_SHIFT for taint in node["spec"].get("taints", ()))
    ]


def in_zone(simulation: Simulation) -> set[str]:
    """Return the apps with pods in the zone."""
    return {
        pod["metadata"]["labels"]["app"]
        for pod in all_of(simulation, "pods")
        if pod["spec"].get("nodeName") in of_zone(simulation)
    }


def released(simulation: Simulation) -> list[str]:
    return [
        pod["metadata"]["name"]
        for pod in all_of(simulation, "pods")
        if RELEASED in pod["metadata"].get("annotations", {})
    ]


def test_no_node_is_launched_in_the_zone_while_traffic_is_shifted_away(played):
    machines = played(14).rig_clusters["harbor"].fleet.machine.values()
    added = [m for m in machines if m.number > m.group.size]
    assert added
    assert SHIFTED not in {m.zone for m in added}


def test_what_can_be_released_leaves_the_zone_and_what_its_volume_holds_stays(played):
    before, during = in_zone(played(0.3)), played(14)
    assert before > in_zone(during)
    assert "cart" in in_zone(during)
    assert len(tainted(during)) == len(of_zone(during)) > 0
    assert released(during) == []


def test_in_a_practice_run_the_zone_is_tainted_and_its_pods_stay(played, tmp_path):
    copy = shutil.copytree(FOLDER, tmp_path / "examples") / "zonal-shift.yaml"
    entry = "zonalShift: us-east-1b, for: 15m"
    copy.write_text(copy.read_text().replace(entry, f"{entry}, practice: true"))
    before, during = in_zone(played(0.3, copy)), played(4, copy)
    assert len(tainted(during)) == len(of_zone(during)) > 0
    assert in_zone(during) == before
    assert tainted(played(17, copy)) == []


def test_when_traffic_comes_back_nothing_of_it_is_left(played):
    after = played(17)
    assert tainted(after) == released(after) == []
    assert not any(node["spec"].get("unschedulable") for node in of_zone(after).values())


@pytest.mark.parametrize("lost", ["20s", "15m20s"], ids=["beginning", "end"])
def test_a_lost_event_of_a_shift_is_made_up_for_within_three_minutes(played, tmp_path, lost):
    copy = shutil.copytree(FOLDER, tmp_path / "examples") / "zonal-shift.yaml"
    fault = f"{{at: {lost}, fault: notices-lost, for: 1s, fraction: 1}}"
    copy.write_text(copy.read_text().replace("  timeline:\n", f"  timeline:\n    - {fault}\n"))
    during = played(4, copy)
    assert len(tainted(during)) == len(of_zone(during)) > 0
    assert tainted(played(18.5, copy)) == []
