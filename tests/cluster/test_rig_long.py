"""What the cluster rig comes to is what the simulated rig comes to: the examples, and random storms."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Final

import pytest

from plimsoll_simulation.measure.report import Report
from plimsoll_simulation.rigs.simulated import rig as simulated
from plimsoll_simulation.rigs.warmup import NeverReadyError
from plimsoll_simulation.scenario.capabilities import unsupported
from plimsoll_simulation.scenario.drill import read_drill
from plimsoll_simulation.storms.draw import draw_storm
from plimsoll_simulation.storms.files import write_storm
from tests.support.examples import FOLDER, VERDICTS, unexpected

pytestmark = [pytest.mark.cluster, pytest.mark.long]

PLIMSOLL: Final = "from plimsoll_cli import main; main()"
SHORT: Final = Path(__file__).parent / "rig" / "two-nodes.yaml"
MINUTES: Final = 30
STORMS: Final = 30
AT_ONCE: Final = 3
"""Storms that are played side by side: each mostly waits."""


def played(file: Path, *, seed: int | None = None) -> Report:
    """Play a drill as people do; its report is the answer, whatever came of its expectations."""
    chosen = [] if seed is None else ["--seed", str(seed)]
    command = [sys.executable, "-c", PLIMSOLL, "drill", str(file), *chosen]
    done = subprocess.run(
        [*command, "--rig", "cluster", "--json", "-", "--verbose"],
        capture_output=True,
        text=True,
        timeout=MINUTES * 60,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stderr
    report: Report = json.loads(done.stdout)
    return report


def playable() -> list[str]:
    """Return the examples that the rig does not refuse."""
    return [
        name
        for name in sorted(VERDICTS)
        if not unsupported(read_drill(FOLDER / f"{name}.yaml").scenario, "cluster")
    ]


@pytest.mark.parametrize("name", playable())
def test_an_example_has_the_verdict_of_the_simulated_rig(name: str):
    report = played(FOLDER / f"{name}.yaml")
    assert unexpected(name, report["expect"]["failures"]) == []
    assert report["totals"]["pods_killed"] == report["totals"]["pods_cut_short"] == 0
    assert report["settled"]


def test_only_what_needs_a_slow_api_server_or_a_throttled_aws_is_refused():
    assert VERDICTS.keys() - set(playable()) == {"slow-and-throttled"}


def test_two_drills_run_at_once_and_neither_sees_the_other():
    with ThreadPoolExecutor() as threads:
        reports = list(threads.map(played, [SHORT, SHORT]))
    for report in reports:
        assert report["expect"] == {"held": True, "failures": []}
        assert [node["name"] for node in report["nodes"]] == ["spot-1", "spot-2"]
        assert all(node["cordoned"] is not None for node in report["nodes"])
        assert len(report["reports"]) == 2


def killed(report: Report) -> Mapping[str, int]:
    """Return how many pods of each workload were killed."""
    return {
        f"{row['kind']} {row['namespace']}/{row['name']}": row["pods_killed"]
        for row in report["workloads"]
    }


@dataclass(frozen=True, kw_only=True)
class Saved:
    """A storm, and what the simulated rig lost in it."""

    seed: int
    file: Path
    killed: Mapping[str, int]


def storms(folder: Path) -> Iterator[Saved]:
    """Yield random storms that can be played, for ever."""
    for seed in count():
        file = write_storm(draw_storm(seed, small=True), folder / str(seed))
        drill = read_drill(file)
        if unsupported(drill.scenario, "cluster"):
            continue
        try:
            report = simulated.run(drill, responder="plimsoll", seed=seed)
        except NeverReadyError:  # that is the storm's fault
            continue
        yield Saved(seed=seed, file=file, killed=killed(report))


def worse_on_the_cluster(storm: Saved) -> list[str]:
    """Play a storm on the cluster rig; return in words what was lost there alone."""
    return [
        f"storm {storm.seed}: {who} lost {pods} pods, and none on the simulated rig"
        for who, pods in killed(played(storm.file, seed=storm.seed)).items()
        if pods and not storm.killed[who]
    ]


def test_no_storm_kills_a_pod_of_a_workload_that_the_simulated_rig_saves(tmp_path):
    """Where the simulated rig loses some, the scheduler's own chance decides how many."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        findings = threads.map(worse_on_the_cluster, islice(storms(tmp_path), STORMS))
        assert [line for lines in findings for line in lines] == []
