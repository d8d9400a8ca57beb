"""Drills that are kept for what they teach: each holds what it expects, and loses no pod."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from plimsoll_simulation.rigs.simulated.rig import Simulation, run
from plimsoll_simulation.scenario.drill import read_drill
from plimsoll_simulation.storms.compare import OURS, losses, play, worse_than

DRILLS: Final = Path(__file__).parents[1] / "drills"
KEPT: Final = sorted(
    f"{theme}/{folder.name}"
    for theme in ("capacity", "notices", "replace")
    for folder in (DRILLS / theme).iterdir()
)
SITUATIONS: Final = sorted(folder.name for folder in (DRILLS / "situations").iterdir())
WORSE: Final = {
    "lone-member-that-states-minutes": ("Database default/store", "none", "seconds at zero"),
    "members-that-state-a-minute": ("StatefulSet default/store", "drain", "seconds at zero"),
    "members-whose-hook-sleeps": ("Database default/queue", "drain", "pods killed or cut short"),
}
"""Where a workload is worse off by a rule of ours, and in what alone."""


@pytest.mark.parametrize("name", KEPT)
def test_a_kept_drill_says_what_it_teaches_and_holds(name: str):
    file = DRILLS / name / "drill.yaml"
    assert "# What it teaches: " in file.read_text()
    drill = read_drill(file)
    report = run(drill, responder="plimsoll", seed=drill.scenario.seed)
    assert report["expect"]["failures"] == []
    assert report["totals"]["pods_killed"] == report["totals"]["pods_cut_short"] == 0
    assert report["settled"]


@pytest.mark.parametrize("name", SITUATIONS)
def test_in_a_situation_of_real_clusters_nobody_is_worse_off_than_without_plimsoll(name: str):
    file = DRILLS / "situations" / name / "drill.yaml"
    assert "# What it teaches: " in file.read_text()
    drill = read_drill(file)
    with Simulation(drill, responder=OURS, seed=drill.scenario.seed) as simulation:
        report = simulation.run()
    assert report["expect"]["failures"] == []
    ours = losses(simulation.measurement)
    assert [w for w in worse_than(drill, ("drain", "none"), ours) if not w.excused] == []


@pytest.mark.parametrize("name", sorted(folder.name for folder in (DRILLS / "worse").iterdir()))
def test_what_a_rule_costs_a_workload_is_known_and_no_more_than_that(name: str):
    file = DRILLS / "worse" / name / "drill.yaml"
    assert "# What it teaches: " in file.read_text()
    drill = read_drill(file)
    worse = worse_than(drill, ("drain", "none"), play(drill, OURS))
    assert [(w.workload, w.than, w.figure) for w in worse] == [WORSE[name]]
