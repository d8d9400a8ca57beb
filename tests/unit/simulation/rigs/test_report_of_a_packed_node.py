"""What is read at three in the morning after a node with 110 pods went: the whole fate of its pods on one screen."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, override

import pytest

from plimsoll.domain.reports import Report
from plimsoll_cli.options import SCREEN
from plimsoll_simulation.measure.listening import Quiet
from plimsoll_simulation.rigs.simulated.rig import Simulation
from plimsoll_simulation.scenario.drill import read_drill
from tests.support.cli_environment import MemoryEnvironment, a_cluster, run

DRILL: Final = (
    Path(__file__).parents[3] / "drills/situations/hundred-pods-on-one-node" / "drill.yaml"
)
EVICTED: Final = re.compile(r"evict (?:(\d+) pods of (Deployment \S+)|Pod (\S+)): (.*)")


@dataclass(slots=True)
class Listening(Quiet):
    """Keeps the lines of the run."""

    lines: list[str]

    @override
    def say(self, seconds: float, what: str) -> None:
        self.lines.append(what)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """The stored report, and the evictions in the log of the run."""

    report: Report
    late: Sequence[str]
    """Pods evicted at their eviction deadlines."""


@pytest.fixture(scope="module")
def played() -> Played:
    drill, lines = read_drill(DRILL), list[str]()
    listener = Listening(lines)
    with Simulation(
        drill, responder="plimsoll", seed=drill.scenario.seed, listener=listener
    ) as simulation:
        simulation.run()
        (report,) = simulation.responder.reports("harbor")
    late = [
        line.split(":")[0].removeprefix("evict Pod ")
        for line in lines
        if line.startswith("evict Pod ") and "eviction deadline" in line
    ]
    return Played(report=report, late=late)


def shown(report: Report, *options: str) -> list[str]:
    environment = MemoryEnvironment()
    environment.registry.add(a_cluster(report.cluster))
    environment.reports.merge(report)
    result = run(environment, "reports", "show", report.interruption, *options)
    assert result.exit_code == 0
    return result.stdout.splitlines()


def test_the_report_fits_a_screen_and_accounts_for_each_pod_that_left_at_its_deadline(
    played: Played,
):
    lines = shown(played.report)
    told: Counter[str] = Counter()
    for found in filter(None, map(EVICTED.search, lines)):
        count, workload, pod, why = found.groups()
        if "eviction deadline" in why:
            told[workload or f"Deployment {pod.rsplit('-', 2)[0]}"] += int(count or 1)

    assert len(lines) <= SCREEN
    assert len(played.late) > 20
    assert told == Counter(f"Deployment {pod.rsplit('-', 2)[0]}" for pod in played.late)


def test_all_of_it_names_each_pod(played: Played):
    text = "\n".join(shown(played.report, "--verbose"))
    assert [pod for pod in played.late if pod not in text] == []


def test_each_workload_and_cause_has_one_reason(played: Played):
    keys = Counter((one.verb, one.about, one.cause) for one in played.report.reasons)
    assert set(keys.values()) == {1}
    released = {pod for one in played.report.reasons if one.verb == "release" for pod in one.pods}
    assert len(released) == 110


def test_a_webhook_that_lets_no_pod_be_released_is_named_in_the_report():
    drill = read_drill(DRILL.parents[2] / "worse/webhook-fails-the-release/drill.yaml")
    with Simulation(drill, responder="plimsoll", seed=drill.scenario.seed) as simulation:
        simulation.run()
        (report,) = simulation.responder.reports("harbor")
    (told,) = [one for one in report.reasons if "checks.example.com" in one.why]
    assert told.about == "Deployment default/web"
    assert told.urgent
