"""What a drill's history keeps, and that keeping it changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from plimsoll_simulation.measure.history import History
from plimsoll_simulation.measure.listening import Quiet, RecordingListener
from plimsoll_simulation.measure.report import Report
from plimsoll_simulation.rigs.simulated.rig import run
from plimsoll_simulation.scenario.drill import read_drill

EXAMPLE = Path(__file__).parents[4] / "examples" / "all-spot-at-once.yaml"


@pytest.fixture(scope="module")
def drained() -> tuple[Report, History]:
    history = History()
    listener = RecordingListener(Quiet(), history)
    drill = read_drill(EXAMPLE)
    return run(drill, responder="drain", seed=7, listener=listener, history=history), history


def test_the_levels_add_up_to_what_the_report_says_was_lost(drained):
    report, history = drained
    for row in report["workloads"]:
        levels = history.levels[row["cluster"], row["namespace"], row["kind"], row["name"]]
        ends = [*(level.seconds for level in levels[1:]), report["seconds"]]
        lost = sum(
            max(0, level.replicas - level.ready) * (end - level.seconds)
            for level, end in zip(levels, ends, strict=True)
        )
        assert lost == pytest.approx(row["ready_replica_seconds_lost"], abs=0.01)
        assert min(level.ready for level in levels) == row["min_ready"]


def test_a_node_of_the_report_has_its_pods_until_the_report_says_it_is_empty(drained):
    report, history = drained
    for row in report["nodes"]:
        loads = history.nodes[row["instance"]].loads
        assert loads[0].seconds == 0
        assert loads[0].pods > 0
        empty = [load.seconds for load in loads if not load.pods and load.seconds < row["gone"]]
        assert empty[-1:] == ([] if row["empty"] is None else [pytest.approx(row["empty"])])
