"""Drills that are kept for what they teach: each holds what it expects, and loses no pod."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from plimsoll_testbed.rigs.simulated.rig import run
from plimsoll_testbed.scenario.drill import read_drill

DRILLS: Final = Path(__file__).parents[1] / "drills"
TOLERANCE: Final = 5
"""Seconds, since a notice takes its way to us."""
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


def losses(name: str, responder: str) -> dict[str, tuple[float, float, float]]:
    """Return what each workload lost that a replacement serves for: pods of a negative priority serve nobody."""
    drill = read_drill(DRILLS / name / "drill.yaml")
    return {
        row["name"]: (
            row["seconds_at_zero"],
            row["seconds_below_floor"],
            row["pods_killed"] + row["pods_cut_short"],
        )
        for row in run(drill, responder=responder, seed=drill.scenario.seed)["workloads"]
        if row["name"] != "balloon"
    }


def test_where_balloons_hold_the_room_nobody_is_worse_off_than_without_plimsoll():
    drill = "replace/balloons-make-way"
    ours, drain, none = (losses(drill, who) for who in ("plimsoll", "drain", "none"))
    for name, lost in ours.items():
        for mine, drained, left in zip(lost, drain[name], none[name], strict=True):
            assert mine <= min(drained, left) + TOLERANCE, name
