"""Every drill of the examples is played, and its verdict is the one that stands here."""

from __future__ import annotations

import re
from functools import cache

import pytest

from plimsoll_simulation.measure.report import Report
from plimsoll_simulation.rigs.simulated.rig import run
from plimsoll_simulation.scenario.drill import read_drill
from tests.support.examples import FOLDER, VERDICTS, unexpected


def drills() -> list[str]:
    return sorted(
        file.stem for file in FOLDER.glob("*.yaml") if "\nkind: Drill\n" in file.read_text()
    )


@cache
def played(name: str, responder: str) -> Report:
    drill = read_drill(FOLDER / f"{name}.yaml")
    return run(drill, responder=responder, seed=drill.scenario.seed)


def test_every_example_has_its_verdict_here():
    assert drills() == sorted(VERDICTS)
    assert len(VERDICTS) >= 10


@pytest.mark.parametrize("name", sorted(VERDICTS))
def test_the_verdict_on_an_example_is_the_one_that_stands_here(name: str):
    assert unexpected(name, played(name, "plimsoll")["expect"]["failures"]) == []


@pytest.mark.parametrize("name", sorted(VERDICTS))
def test_no_example_loses_a_pod_and_each_ends_settled(name: str):
    report = played(name, "plimsoll")
    assert report["totals"]["pods_killed"] == report["totals"]["pods_cut_short"] == 0
    assert report["settled"]


@pytest.mark.parametrize("name", sorted(VERDICTS))
def test_whoever_only_evicts_never_does_better(name: str):
    ours, theirs = played(name, "plimsoll")["totals"], played(name, "drain")["totals"]
    for figure in ("pods_killed", "seconds_at_zero", "ready_replica_seconds_lost"):
        assert ours[figure] <= theirs[figure] + 0.1


@pytest.mark.parametrize("name", sorted(VERDICTS))
def test_an_example_says_first_what_it_teaches_and_how_to_try_it(name: str):
    comment, _, rest = (FOLDER / f"{name}.yaml").read_text().partition("apiVersion:")
    lines = comment.splitlines()
    assert all(line.startswith("#") for line in lines)
    assert "# What it teaches: " in comment
    assert re.findall(r"plimsoll drill examples/(\S+)\.yaml", comment) == [name, name]
    assert f"\n  name: {name}\n" in rest
    assert "\n  expect:\n" in rest


def test_every_manifest_of_the_examples_is_played_by_one_of_them():
    texts = {file: file.read_text() for file in FOLDER.glob("*.yaml")}
    for file in texts.keys() - {FOLDER / f"{name}.yaml" for name in drills()}:
        assert any(
            re.search(rf"[\[ ]{re.escape(file.name)}[\],}}]", text) for text in texts.values()
        ), file
