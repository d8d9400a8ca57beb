"""Drills that are kept for what they teach: each holds what it expects, and loses no pod."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from plimsoll_testbed.rigs.simulated.rig import run
from plimsoll_testbed.scenario.drill import read_drill

DRILLS: Final = Path(__file__).parents[1] / "drills"
KEPT: Final = sorted(
    f"{theme}/{folder.name}"
    for theme in ("capacity", "notices", "replace")
    for folder in (DRILLS / theme).iterdir()
)


@pytest.mark.parametrize("name", KEPT)
def test_a_kept_drill_says_what_it_teaches_and_holds(name: str):
    file = DRILLS / name / "drill.yaml"
    assert "# What it teaches: " in file.read_text()
    drill = read_drill(file)
    report = run(drill, responder="plimsoll", seed=drill.scenario.seed)
    assert report["expect"]["failures"] == []
    assert report["totals"]["pods_killed"] == report["totals"]["pods_cut_short"] == 0
    assert report["settled"]
