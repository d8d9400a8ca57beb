"""Frames of whole storms: each says what was so at its own instant, and what a person must do follows from it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.frames import Frame
from plimsoll_simulation.fake_aws.stores import MemoryFrames
from plimsoll_simulation.measure.history import History, Level
from plimsoll_simulation.rigs.simulated.rig import Simulation
from plimsoll_simulation.rigs.simulated.time import EPOCH
from plimsoll_simulation.rigs.warmup import NeverReadyError
from plimsoll_simulation.scenario.drill import Drill, read_drill
from plimsoll_simulation.storms import Storm, read_storm
from tests.support.properties import drawn
from tests.support.storms import storms

ROOT = Path(__file__).parents[2]
READING = 0.5
"""Seconds that an observation takes: what it says was so within them."""
DRILLS = [
    "examples/all-spot-at-once.yaml",
    pytest.param("examples/refused-capacity.yaml", marks=pytest.mark.long),
    pytest.param("tests/drills/capacity/group-at-its-maximum/drill.yaml", marks=pytest.mark.long),
    pytest.param("examples/one-zone.yaml", marks=pytest.mark.long),
    pytest.param("examples/statefulset-with-volumes.yaml", marks=pytest.mark.long),
]


def played(drill: Drill) -> tuple[Sequence[Frame], History, Simulation]:
    sink, history = MemoryFrames(), History()
    seed = drill.scenario.seed
    with Simulation(
        drill, responder="plimsoll", seed=seed, history=history, frames=sink
    ) as simulation:
        simulation.run()
    return [frame for frames in sink.of.values() for frame in frames], history, simulation


def at(levels: Sequence[Level], seconds: float) -> Sequence[int]:
    """Return how many pods were Ready then, and within the time that a reader takes."""
    times = [level.seconds for level in levels]
    first, last = bisect_right(times, seconds - READING), bisect_right(times, seconds)
    return [level.ready for level in levels[max(0, first - 1) : last]]


@pytest.mark.parametrize("name", DRILLS)
def test_each_frame_says_how_many_pods_were_ready_at_its_own_instant(name: str):
    frames, history, simulation = played(read_drill(ROOT / name))
    zero = simulation.measurement.started
    assert zero is not None
    assert len(frames) > 20
    for frame in frames:
        for found in frame.workloads:
            kind, _, path = found.ref.partition(" ")
            namespace, _, workload = path.partition("/")
            levels = history.levels.get((frame.cluster, namespace, kind, workload))
            if levels is not None:
                assert found.ready in at(levels, (frame.at - zero).total_seconds()), found
    lowest = {
        (frame.cluster, found.ref): found.lowest for frame in frames for found in frame.workloads
    }
    for metrics in simulation.measurement.workload_metrics.values():
        cluster, namespace, kind, workload = metrics.id
        told = lowest.get((cluster, f"{kind} {namespace}/{workload}"))
        assert told in {None, metrics.min_ready}, metrics.id


def assert_sound(frame: Frame) -> None:
    counts, task = frame.counts, frame.task
    assert counts.of == counts.safe + counts.starting + counts.no_node + counts.not_begun
    parts = [counts.safe, counts.starting, counts.no_node, counts.not_begun, counts.at_risk]
    assert min(parts) >= 0
    assert counts.at_risk <= counts.of - counts.safe
    short = counts.at_zero + counts.below_floor + counts.no_node
    nothing = not task.acts and not task.waiting
    assert nothing == (short == 0)
    assert not (task.acts and task.waiting)
    assert len(task.acts) <= 3
    assert all(0 < len(act) <= 400 for act in task.acts)
    if task.waiting and counts.no_node:
        assert task.nodes_coming
    for found in frame.workloads:
        assert found.not_begun >= 0
        assert found.lowest <= found.ready


@drawn(3, many=150)
@given(storm=st.booleans().flatmap(lambda small: storms(small=small)))
def test_every_frame_of_a_storm_adds_up_and_has_one_of_three_tasks(storm: Storm):
    try:
        frames, _, _ = played(read_storm(storm))
    except NeverReadyError:
        return
    for frame in frames:
        assert_sound(frame)
        assert frame.at >= EPOCH
