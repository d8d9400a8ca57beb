"""One whole drill on the deployed stack: what it must show, and that nothing of it stays behind."""

from __future__ import annotations

import re
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import override

import pytest

from plimsoll_simulation.measure.listening import Quiet
from plimsoll_simulation.measure.report import Report, exit_status
from plimsoll_simulation.rigs.simulated import rig as simulated
from plimsoll_simulation.scenario.drill import read_drill
from plimsoll_testbed.rigs.emulated import rig as emulated
from tests.support.processes import alive

pytestmark = [pytest.mark.emulator, pytest.mark.cluster]

DRILL = Path(__file__).parent / "emulated" / "drill.yaml"
LINUX = sys.platform == "linux"


def listening() -> set[str]:
    """Return the sockets that this process listens on."""
    ours = set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            ours |= set(re.findall(r"socket:\[(\d+)\]", str(link.readlink())))
        except OSError:  # the descriptor that lists them
            continue
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return {line.split()[9] for line in lines if line.split()[3] == "0A"} & ours


@dataclass
class Watcher(Quiet):
    """Sees what a drill has started, while it runs."""

    folder: Path
    before: set[str]
    """The sockets that were open when it began."""
    processes: int = 0
    sockets: int = 0
    said: list[str] = field(default_factory=list)

    @override
    def say(self, seconds: float, what: str) -> None:
        self.said.append(what)
        if LINUX:
            self.processes = max(self.processes, len(list(alive(self.folder))))
            self.sockets = max(self.sockets, len(listening() - self.before))


@dataclass(frozen=True, kw_only=True)
class Played:
    report: Report
    watcher: Watcher


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    watcher = Watcher(tmp_path_factory.mktemp("temporary"), before=listening() if LINUX else set())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(watcher.folder))
        drill = read_drill(DRILL)
        report = emulated.run(drill, responder="plimsoll", seed=0, listener=watcher)
    return Played(report=report, watcher=watcher)


def test_no_pod_is_killed_or_cut_short(played):
    totals = played.report["totals"]
    assert (totals["pods_killed"], totals["pods_cut_short"]) == (0, 0)
    assert totals["seconds_at_zero"] == 0


def test_every_node_is_cordoned_and_empty_before_it_goes(played):
    assert len(played.report["nodes"]) == 2
    for node in played.report["nodes"]:
        assert node["noticed"] < node["cordoned"] < node["empty"] < node["gone"]


def test_it_settles_and_its_expectations_hold(played):
    assert played.report["settled"]
    assert played.report["expect"] == {"held": True, "failures": []}
    assert exit_status(played.report) == 0


def verdict(report):
    """What of a report must not depend on the rig."""
    return {
        "status": exit_status(report),
        "settled": report["settled"],
        "killed": report["totals"]["pods_killed"],
        "cut short": report["totals"]["pods_cut_short"],
        "at zero": report["totals"]["workloads_at_zero"],
        "below their floor": {
            row["name"] for row in report["workloads"] if row["seconds_below_floor"]
        },
        "notices": {row["name"]: row["notice"] for row in report["nodes"]},
        "cordoned": {row["name"] for row in report["nodes"] if row["cordoned"] is not None},
        "replaced first": {row["name"]: row["replaced_first"] for row in report["workloads"]},
    }


def test_the_simulated_rig_comes_to_the_same_verdict(played):
    report = simulated.run(read_drill(DRILL), responder="plimsoll", seed=0)
    assert verdict(played.report) == verdict(report)


def test_the_reports_of_the_functions_are_handed_in_with_their_reasons(played):
    interruptions = {row["interruption"].partition("@")[0] for row in played.report["reports"]}
    assert interruptions == {node["instance"] for node in played.report["nodes"]}
    assert all(row["reasons"] for row in played.report["reports"])


def test_calls_to_both_apis_are_counted(played):
    api = played.report["api"]
    assert api["kubernetes"]["PATCH"] >= 2
    assert api["kubernetes"]["GET"] > 0
    assert api["aws"]["autoscaling:DescribeAutoScalingGroups"] > 0


def test_what_the_functions_do_is_told_while_it_happens(played):
    # At once, from the change, and again with the reason, from the log of the function.
    cordons = [line for line in played.watcher.said if line.startswith("cordon Node spot-")]
    assert len({line.partition(":")[0] for line in cordons}) == 2
    assert any(": " in line for line in cordons)


@pytest.mark.skipif(not LINUX, reason="reads /proc")
def test_nothing_is_left_running_and_no_port_open(played):
    assert played.watcher.processes > 0
    assert played.watcher.sockets > 0
    assert list(alive(played.watcher.folder)) == []
    assert listening() <= played.watcher.before
    assert list(played.watcher.folder.iterdir()) == []
