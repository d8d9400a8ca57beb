"""What a drill's history keeps, and that keeping it changes nothing."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from plimsoll_testbed.measure.history import History, RecordingListener
from plimsoll_testbed.measure.listening import Quiet
from plimsoll_testbed.measure.report import Report, as_text
from plimsoll_testbed.rigs.simulated.rig import run
from plimsoll_testbed.scenario.drill import read_drill

EXAMPLE = Path(__file__).parents[2] / "examples" / "all-spot-at-once.yaml"


@pytest.fixture(scope="module")
def drained() -> tuple[Report, History]:
    history = History()
    listener = RecordingListener(Quiet(), history)
    drill = read_drill(EXAMPLE)
    return run(drill, responder="drain", seed=7, listener=listener, history=history), history


def test_the_report_is_the_same_with_and_without_a_history(drained):
    report, _ = drained
    assert as_text(run(read_drill(EXAMPLE), responder="drain", seed=7)) == as_text(report)


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


def test_each_series_begins_at_time_0_and_tells_changes_only(drained):
    _, history = drained
    for levels in history.levels.values():
        assert levels[0].seconds == 0
        assert all(a.seconds < b.seconds for a, b in pairwise(levels))
        assert all(a[1:] != b[1:] for a, b in pairwise(levels))


def test_a_node_of_the_report_has_its_pods_until_the_report_says_it_is_empty(drained):
    report, history = drained
    for row in report["nodes"]:
        loads = history.nodes[row["instance"]].loads
        assert loads[0].seconds == 0
        assert loads[0].pods > 0
        empty = [load.seconds for load in loads if not load.pods and load.seconds < row["gone"]]
        assert empty[-1:] == ([] if row["empty"] is None else [pytest.approx(row["empty"])])


def test_new_nodes_are_known_from_their_launch(drained):
    _, history = drained
    added = [track for track in history.nodes.values() if track.launched > 0]
    assert added
    assert all(track.joined is not None and track.joined > track.launched for track in added)


def test_each_pod_that_the_report_counts_has_its_fate(drained):
    report, history = drained
    for fate, field in (("evicted", "pods_evicted"), ("killed", "pods_killed")):
        for row in report["workloads"]:
            who = (row["cluster"], row["namespace"], row["kind"], row["name"])
            found = [f for f in history.fates if f.fate == fate and f.workload == who]
            assert len(found) >= row[field]  # an evicted pod that is killed counts as killed


def test_what_is_said_before_time_0_is_left_out(drained):
    _, history = drained
    assert history.lines[0].what.startswith("spot-interruption for ")
    quiet = History()
    RecordingListener(Quiet(), quiet).say(3.0, "started the emulator")
    assert quiet.lines == []
