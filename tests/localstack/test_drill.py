"""One whole drill on LocalStack: the deployed stack carries a fake cluster through an interruption."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import override

import pytest

from plimsoll_simulation.measure.listening import Quiet
from plimsoll_simulation.measure.report import exit_status
from plimsoll_simulation.scenario.drill import read_drill
from plimsoll_testbed.rigs.localstack import localstack
from tests.support.processes import alive

pytestmark = pytest.mark.localstack

DRILL = Path(__file__).parents[1] / "e2e" / "emulated" / "drill.yaml"


@dataclass
class Audience(Quiet):
    """Hears a drill, and counts what it has started."""

    folder: Path
    said: list[str] = field(default_factory=list)
    processes: int = 0

    @override
    def say(self, seconds: float, what: str) -> None:
        self.said.append(what)
        if sys.platform == "linux":
            self.processes = max(self.processes, len(list(alive(self.folder))))


@pytest.fixture(scope="module")
def audience(tmp_path_factory):
    return Audience(tmp_path_factory.mktemp("temporary"))


@pytest.fixture(scope="module")
def report(audience):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(audience.folder))
        return localstack.run(read_drill(DRILL), responder="plimsoll", seed=0, listener=audience)


def test_no_pod_is_killed_and_what_is_expected_holds(report):
    assert report["totals"]["pods_killed"] == 0
    assert report["totals"]["seconds_at_zero"] == 0
    assert report["settled"]
    assert report["expect"] == {"held": True, "failures": []}
    assert exit_status(report) == 0


def test_every_node_is_cordoned_and_empty_before_it_goes(report):
    assert len(report["nodes"]) == 2
    for node in report["nodes"]:
        assert node["noticed"] < node["cordoned"] < node["empty"] < node["gone"]


def test_the_functions_hand_in_their_reports_and_what_they_ask_of_auto_scaling_is_the_fleets(
    report,
):
    interruptions = {row["interruption"].partition("@")[0] for row in report["reports"]}
    assert interruptions == {node["instance"] for node in report["nodes"]}
    assert report["api"]["aws"]["autoscaling:DescribeAutoScalingGroups"] > 0


def test_what_the_functions_do_is_told_while_it_happens(report, audience):
    assert report["rig"] == "localstack"
    cordons = [line for line in audience.said if line.startswith("cordon Node spot-")]
    assert len({line.partition(":")[0] for line in cordons}) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nothing_is_left_of_it(report, audience):
    assert report["settled"]
    assert (
        audience.processes >= 4
    )  # its supervisor, LocalStack, the database, at least one function
    assert list(alive(audience.folder)) == []
    assert list(audience.folder.iterdir()) == []
