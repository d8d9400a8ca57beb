"""Storms that once broke a rule, shrunk and kept as drills: which rules each breaks today."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import pytest

from plimsoll_simulation.measure.report import Report
from plimsoll_simulation.rigs.simulated.rig import run
from plimsoll_simulation.scenario.drill import Drill, read_drill
from plimsoll_simulation.storms import StormResult, play_kept
from plimsoll_simulation.storms.compare import worse_than

KEPT: Final = Path(__file__).parents[1] / "drills" / "storms"
TWICE: Final = {"one-node-too-many"}
"""Storms that are about two executors at once."""
BROKEN: Final = {"advice-refused-by-a-webhook": {"not-cordoned"}}
"""Which rules a kept storm still breaks; its comment says why."""


def kept(name: str) -> Drill:
    return read_drill(KEPT / name / "drill.yaml")


@cache
def played(name: str) -> StormResult:
    return play_kept(kept(name), twice=name in TWICE)


def reported(name: str) -> Report:
    return run(kept(name), responder="plimsoll", seed=kept(name).scenario.seed)


def seconds_at_zero(report: Report) -> dict[str, float]:
    return {row["name"]: row["seconds_at_zero"] for row in report["workloads"]}


@pytest.mark.parametrize("name", sorted(folder.name for folder in KEPT.iterdir()))
def test_a_kept_storm_breaks_no_rule_but_those_that_are_known(name: str):
    result = played(name)
    assert result.playable
    assert set(result.rules) == BROKEN.get(name, set()), result.violations


@pytest.mark.parametrize(
    "name",
    [
        "first-of-each-workload",
        "first-of-the-dead",
        "job-that-died",
        "place-on-a-stopped-instance",
        "place-that-others-take",
        "place-that-released-pods-take",
    ],
)
def test_where_places_are_short_nobody_is_worse_off_than_under_a_plain_drain(name: str):
    found = worse_than(kept(name), ["drain"], played(name).losses)
    assert [worse for worse in found if worse.excused is None] == []


def test_a_node_is_asked_for_in_the_zone_of_a_volume_although_another_is_on_its_way():
    """Two minutes are the start of a node and of the pod; it was a minute more."""
    at_zero = seconds_at_zero(reported("node-on-its-way-in-another-zone"))
    assert at_zero.keys() == {"w0", "w1"}
    assert max(at_zero.values()) < 150


def test_who_would_be_at_zero_at_its_latest_safe_start_moves_before_it():
    assert seconds_at_zero(reported("at-its-floor-until-zero")) == {"w0": 0, "w1": 0}


def test_a_group_that_ends_an_instance_is_asked_where_no_other_can_grow():
    """It was left out, and w1 was at zero until the end, 820 seconds."""
    report = reported("group-that-ends-an-instance")
    at_zero = seconds_at_zero(report)
    asked = [row["group"] for row in report["capacity"] if row["first_asked"] is not None]
    assert asked == ["base"]
    assert at_zero["w0"] < 10
    assert at_zero["w1"] < 50


def test_a_place_that_a_rollout_frees_goes_back_to_the_workload_that_had_it():
    """Without Plimsoll w1 is at zero for 43 seconds, its own rollout, and w0 for 71. It was 146 for w1."""
    at_zero = seconds_at_zero(reported("place-freed-by-a-rollout"))
    assert at_zero["w0"] < 30
    assert at_zero["w1"] < 50
