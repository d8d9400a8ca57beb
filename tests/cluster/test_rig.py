"""Drills on the cluster rig: the deployed stack carries a real control plane through interruptions."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import override

import pytest

from plimsoll_simulation.measure.listening import Quiet
from plimsoll_simulation.measure.report import Report, exit_status
from plimsoll_simulation.measure.snapshot import Snapshot
from plimsoll_simulation.scenario.drill import read_drill
from plimsoll_testbed.rigs.cluster import clusters
from tests.support.processes import alive

pytestmark = pytest.mark.cluster

KILLED_FUNCTIONS = Path(__file__).parent / "rig" / "all-spot.yaml"
BASE = ("base-1", "base-2")
SPOT = ("spot-1", "spot-2", "spot-3")


@dataclass
class Audience(Quiet):
    """Hears a drill, and looks at it."""

    said: list[str] = field(default_factory=list)
    pictures: list[Snapshot] = field(default_factory=list)

    @override
    def say(self, seconds: float, what: str) -> None:
        self.said.append(what)

    @override
    def show(self, snapshot) -> None:
        self.pictures.append(snapshot())


@dataclass(frozen=True, kw_only=True)
class Played:
    report: Report
    audience: Audience
    folder: Path
    """Where it kept its files."""


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    audience, folder = Audience(), tmp_path_factory.mktemp("temporary")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        drill = read_drill(KILLED_FUNCTIONS)
        report = clusters.run(
            drill, responder="plimsoll", seed=drill.scenario.seed, listener=audience
        )
    return Played(report=report, audience=audience, folder=folder)


def test_killing_every_process_of_the_functions_once_costs_no_pod(played):
    killed = [line for line in played.audience.said if "killed by signal" in line]
    assert {line.split("function ")[1].split()[0] for line in killed} == {"notices", "drains"}
    totals = played.report["totals"]
    assert (totals["pods_killed"], totals["pods_cut_short"]) == (0, 0)
    assert totals["seconds_at_zero"] == 0


def test_with_killed_functions_every_expectation_holds_and_the_cluster_comes_to_rest(played):
    assert played.report["expect"] == {"held": True, "failures": []}
    assert played.report["settled"], played.audience.said[-1]
    assert exit_status(played.report) == 0


def test_with_killed_functions_every_node_is_cordoned_and_empty_before_it_goes(played):
    nodes = played.report["nodes"]
    assert [node["name"] for node in nodes] == [*SPOT]
    for node in nodes:
        assert node["noticed"] < node["cordoned"] < node["empty"] < node["gone"]


def test_the_reports_of_the_functions_are_handed_in_with_their_reasons(played):
    interruptions = {row["interruption"].partition("@")[0] for row in played.report["reports"]}
    assert interruptions == {node["instance"] for node in played.report["nodes"]}
    assert all(row["reasons"] for row in played.report["reports"])


def test_calls_to_both_apis_are_counted(played):
    api = played.report["api"]
    assert api["kubernetes"]["PATCH"] >= 2
    assert api["kubernetes"]["GET"] > 0
    assert api["aws"]["autoscaling:DescribeAutoScalingGroups"] > 0


def test_what_can_be_seen_of_a_drill_is_what_the_api_shows(played):
    first, last = played.audience.pictures[0], played.audience.pictures[-1]
    assert {node.name for node in first.nodes if node.state == "standing"} == {*BASE, *SPOT}
    assert sum(pods.ready for node in first.nodes for pods in node.pods) == 10
    assert {node.name for node in last.nodes if node.state == "gone"} == {*SPOT}
    cordoned = {
        node.name for shown in played.audience.pictures for node in shown.nodes if node.cordoned
    }
    assert cordoned == {*SPOT}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nothing_is_left_running_and_no_folder_stays(played):
    """The official client keeps the CA in a file of its own until the process ends."""
    assert list(alive(played.folder)) == []
    assert [path for path in played.folder.iterdir() if path.is_dir()] == []
