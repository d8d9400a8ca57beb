"""Snapshots of a running drill, taken at instants whose state can be worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from plimsoll_simulation.measure.listening import Quiet
from plimsoll_simulation.measure.snapshot import (
    NodeSnapshot,
    PodsSnapshot,
    Snapshot,
    WorkloadSnapshot,
)
from plimsoll_simulation.rigs.simulated.rig import run
from plimsoll_simulation.scenario.drill import read_drill

EXAMPLE = Path(__file__).parents[4] / "examples" / "all-spot-at-once.yaml"


class Recorded(Quiet):
    """Keeps every snapshot, by the second of the drill."""

    def __init__(self) -> None:
        self.snapshots: dict[float, Snapshot] = {}

    def show(self, snapshot: Callable[[], Snapshot]) -> None:
        """Take each one."""
        taken = snapshot()
        self.snapshots[taken.seconds] = taken


def recorded(responder: str) -> dict[float, Snapshot]:
    listener = Recorded()
    run(read_drill(EXAMPLE), responder=responder, seed=7, listener=listener)
    return listener.snapshots


@pytest.fixture(scope="module")
def snapshots() -> dict[float, Snapshot]:
    return recorded("plimsoll")


@pytest.fixture(scope="module")
def drained() -> dict[float, Snapshot]:
    return recorded("drain")


def node(snapshot: Snapshot, name: str) -> NodeSnapshot:
    return next(node for node in snapshot.nodes if node.name == name)


def workload(snapshot: Snapshot, name: str) -> WorkloadSnapshot:
    return next(workload for workload in snapshot.workloads if workload.name == name)


def pods(node: NodeSnapshot) -> PodsSnapshot:
    return PodsSnapshot(
        workload="all",
        ready=sum(p.ready for p in node.pods),
        starting=sum(p.starting for p in node.pods),
        stopping=sum(p.stopping for p in node.pods),
    )


def test_before_the_notices_every_node_stands_and_every_workload_is_complete(
    snapshots: dict[float, Snapshot],
):
    snapshot = snapshots[19.0]
    assert [n.name for n in snapshot.nodes] == [
        "base-1", "base-2", "spot-m5-1", "spot-m5-2", "spot-r5-1", "spot-r5-2",
    ]  # fmt: skip
    assert {(n.state, n.notice, n.seconds_left, n.cordoned) for n in snapshot.nodes} == {
        ("standing", None, None, False)
    }
    assert all(w.ready == w.replicas == w.lowest for w in snapshot.workloads)
    assert snapshot.phase == "no node has notice yet; every workload has all its replicas"
    assert snapshot.waiting == 0


def test_a_notice_counts_down_and_the_cordon_shows(snapshots: dict[float, Snapshot]):
    before, after = node(snapshots[20.0], "spot-m5-1"), node(snapshots[21.0], "spot-m5-1")
    assert (before.notice, before.seconds_left, before.seconds_given) == (
        "spot-interruption", 120.0, 120.0,
    )  # fmt: skip
    assert (before.cordoned, before.interrupted) == (False, True)
    assert (after.cordoned, after.seconds_left, after.seconds_given) == (True, 119.0, 120.0)
    assert not node(snapshots[21.0], "base-1").interrupted
    assert snapshots[21.0].phase.startswith("4 nodes are interrupted, the first in 119 s")


def test_what_went_is_shown_as_gone_and_whoever_died_with_it_is_counted(
    snapshots: dict[float, Snapshot], drained: dict[float, Snapshot]
):
    gone = node(snapshots[140.0], "spot-m5-1")
    assert (gone.state, gone.seconds_left, gone.pods, gone.killed) == ("gone", None, (), 0)
    assert not gone.interrupted
    assert snapshots[140.0].phase == "4 nodes are gone; every workload has all its replicas"
    killed = [n.killed for n in drained[141.0].nodes if n.state == "gone"]
    assert sum(killed) == sum(w.killed for w in drained[141.0].workloads) > 0


def test_a_drain_shows_stopping_pods_and_how_low_a_workload_went(drained: dict[float, Snapshot]):
    assert sum(pods(n).stopping for n in drained[21.0].nodes) > 0
    legacy = workload(drained[30.0], "legacy")
    assert (legacy.ready, legacy.replicas, legacy.floor, legacy.lowest) == (0, 1, 1, 0)
    assert "short of replicas" in drained[30.0].phase
