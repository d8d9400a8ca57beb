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
from tests.support.examples import FOLDER, unexpected
from tests.support.processes import alive

pytestmark = pytest.mark.cluster

KILLED_FUNCTIONS = Path(__file__).parent / "rig" / "all-spot.yaml"


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


def play(file: Path, folder: Path) -> Played:
    audience = Audience()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        drill = read_drill(file)
        report = clusters.run(
            drill, responder="plimsoll", seed=drill.scenario.seed, listener=audience
        )
    return Played(report=report, audience=audience, folder=folder)


@pytest.fixture(scope="module")
def killed_functions(tmp_path_factory):
    return play(KILLED_FUNCTIONS, tmp_path_factory.mktemp("temporary"))


@pytest.fixture(scope="module")
def one_node(tmp_path_factory):
    return play(FOLDER / "one-node.yaml", tmp_path_factory.mktemp("temporary"))


def test_killing_every_process_of_the_functions_once_costs_no_pod(killed_functions):
    killed = [line for line in killed_functions.audience.said if "killed by signal" in line]
    assert {line.split("function ")[1].split()[0] for line in killed} == {"notices", "drains"}
    totals = killed_functions.report["totals"]
    assert (totals["pods_killed"], totals["pods_cut_short"]) == (0, 0)
    assert totals["seconds_at_zero"] == 0


def test_with_killed_functions_every_expectation_holds_and_the_cluster_comes_to_rest(
    killed_functions,
):
    assert killed_functions.report["expect"] == {"held": True, "failures": []}
    assert killed_functions.report["settled"], killed_functions.audience.said[-1]
    assert exit_status(killed_functions.report) == 0


def test_with_killed_functions_every_node_is_cordoned_and_empty_before_it_goes(killed_functions):
    nodes = killed_functions.report["nodes"]
    assert [node["name"] for node in nodes] == ["spot-1", "spot-2", "spot-3"]
    for node in nodes:
        assert node["noticed"] < node["cordoned"] < node["empty"] < node["gone"]


def test_one_node_comes_to_the_verdict_of_the_simulated_rig(one_node):
    assert unexpected("one-node", one_node.report["expect"]["failures"]) == []
    assert one_node.report["settled"], one_node.audience.said[-1]


def test_one_node_is_replaced_before_anybody_leaves_it(one_node):
    rows = {row["name"]: row for row in one_node.report["workloads"]}
    for row in rows.values():
        assert (row["pods_killed"], row["pods_cut_short"]) == (0, 0)
        assert row["name"] == "cart" or row["seconds_below_replicas"] == 0
    assert rows["cart"]["min_ready"] >= 2  # one of its three leaves first, if one was there
    [node] = one_node.report["nodes"]
    assert node["name"] == "spot-m5-1"
    assert one_node.report["capacity"][1]["group"] == "spot-m5"
    assert one_node.report["capacity"][1]["nodes_added"] == 1  # its group replaces it, nobody else


def test_the_reports_of_the_functions_are_handed_in_with_their_reasons(one_node):
    [report] = one_node.report["reports"]
    assert report["interruption"].startswith(one_node.report["nodes"][0]["instance"])
    assert report["reasons"]


def test_calls_to_both_apis_are_counted(one_node):
    api = one_node.report["api"]
    assert api["kubernetes"]["PATCH"] >= 2
    assert api["kubernetes"]["GET"] > 0
    assert api["aws"]["autoscaling:DescribeAutoScalingGroups"] > 0


def test_what_can_be_seen_of_a_drill_is_what_the_api_shows(one_node):
    first, last = one_node.audience.pictures[0], one_node.audience.pictures[-1]
    assert sum(pods.ready for node in first.nodes for pods in node.pods) == 19
    assert {node.name for node in first.nodes if node.state == "standing"} == {
        *("base-1", "base-2", "spot-m5-1", "spot-m5-2", "spot-r5-1", "spot-r5-2")
    }
    assert next(node for node in last.nodes if node.name == "spot-m5-1").state == "gone"
    assert any(
        node.name == "spot-m5-1" and node.cordoned
        for snapshot in one_node.audience.pictures
        for node in snapshot.nodes
    )


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nothing_is_left_running_and_no_folder_stays(one_node, killed_functions):
    """The official client keeps the CA in a file of its own until the process ends."""
    for played in (one_node, killed_functions):
        assert list(alive(played.folder)) == []
        assert [path for path in played.folder.iterdir() if path.is_dir()] == []
