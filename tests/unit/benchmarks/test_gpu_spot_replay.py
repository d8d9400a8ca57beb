"""The replay of spot capacity: how it reads traces, chooses stretches, counts training, and plays one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from benchmarks.gpu_spot_replay.play import CLUSTER, CONTENDERS, Contender, Outcome, Replay
from benchmarks.gpu_spot_replay.traces import (
    BadTraceError,
    Pool,
    Region,
    read_regions,
    spread_over,
    stretches,
)
from benchmarks.gpu_spot_replay.training import (
    CHECKPOINT_SECONDS,
    LAG_SECONDS,
    READS,
    SAVES,
    TOGETHER_SECONDS,
    WRITES_SECONDS,
    Member,
    Trainer,
    Training,
)
from plimsoll.domain.disruptions.stop_times import LEAST_SECONDS
from plimsoll.domain.interruptions import MARGIN

GAP = timedelta(minutes=5)


def write(folder: Path, name: str, counts: Sequence[int], gap: int = 300) -> None:
    folder.mkdir(exist_ok=True)
    trace = {"metadata": {"gap_seconds": gap}, "data": counts, "prices": [1.0]}
    (folder / f"{name}.json").write_text(json.dumps(trace))


def a_region(*pools: Sequence[int], gap: timedelta = GAP) -> Region:
    made = [Pool(zone=f"us-west-2{'abc'[n]}", counts=tuple(c)) for n, c in enumerate(pools)]
    return Region(name="made", gap=gap, pools=tuple(made))


# --- Traces -------------------------------------------------------------------------------------


def test_zones_that_were_recorded_together_are_the_pools_of_one_region(tmp_path: Path):
    write(tmp_path / "a", "us-west-2a_v100_1", [4, 3, 4])
    write(tmp_path / "a", "us-west-2c_v100_1", [2, 2, 0])
    write(tmp_path / "a", "us-east-2a_v100_1", [1, 1, 1])
    write(tmp_path / "b", "us-west-2a_v100_1", [4, 4, 4])
    west, east, other = sorted(read_regions(tmp_path), key=lambda each: -len(each.pools))
    assert [pool.zone for pool in west.pools] == ["us-west-2a", "us-west-2c"]
    assert west.readings() == [(4, 2), (3, 2), (4, 0)]
    assert west.whole == (4, 2)
    assert west.gap == GAP
    assert {east.name, other.name} == {"a us-east-2a v100_1", "b us-west-2a v100_1"}


@pytest.mark.parametrize("counts", [[4, 4], [4, 4, 4]], ids=["shorter", "other gap"])
def test_traces_of_another_length_or_gap_are_not_laid_side_by_side(tmp_path: Path, counts):
    write(tmp_path, "us-west-2a_v100_1", [4, 3, 4])
    write(tmp_path, "us-west-2c_v100_1", counts, gap=300 if len(counts) < 3 else 32)
    assert [len(region.pools) for region in read_regions(tmp_path)] == [1, 1]


@pytest.mark.parametrize(
    "text",
    [
        "4, 4, 3",
        '{"data": [4]}',
        '{"metadata": {"gap_seconds": 0}, "data": [4]}',
        '{"metadata": {"gap_seconds": 300}, "data": []}',
        '{"metadata": {"gap_seconds": 300}, "data": [4, -1]}',
    ],
)
def test_a_file_that_is_no_trace_is_refused_by_name(tmp_path: Path, text: str):
    (tmp_path / "us-west-2a_v100_1.json").write_text(text)
    with pytest.raises(BadTraceError, match=r"us-west-2a_v100_1\.json"):
        read_regions(tmp_path)


def test_a_stretch_lasts_from_the_first_loss_until_all_has_been_back_for_five_minutes():
    counts = [4, 4, 3, 4, 2, 4, 4, 4, *[0] * 10, 4, 4, 1]
    found = stretches(a_region(counts, gap=GAP / 2))
    assert [[count for (count,) in each] for each in found] == [
        [3, 4, 2, 4, 4],
        [0] * 8,  # no longer than twenty minutes
        [1],
    ]


def test_a_loss_of_a_pool_that_was_not_whole_begins_no_stretch():
    assert stretches(a_region([1, 0, 1, 0], [4, 3, 3, 2])) == [[(0, 3), (1, 3), (0, 2)]]
    assert stretches(a_region([3, 2, 1], [4, 4, 5])) == []


def test_stretches_are_taken_at_even_distances():
    assert spread_over(range(10), 3) == [0, 3, 6]
    assert spread_over(range(2), 3) == [0, 1]
    assert spread_over([], 3) == []


# --- Training -----------------------------------------------------------------------------------

BOTH = {"a": Member(), "b": Member()}
TOLD = {"a": Member(told=True), "b": Member(told=True)}


def trained(trainer: Trainer, *phases: tuple[int, Mapping[str, Member]]) -> Training:
    """Return a gang of two pods with 100 s unsaved after so many seconds of each phase."""
    gang = Training(size=2, trainer=trainer, unsaved=100)
    for seconds, there in phases:
        for _ in range(seconds):
            gang.second(there)
    return gang


@pytest.mark.parametrize("trainer", [READS, SAVES])
def test_what_was_done_since_the_last_checkpoint_is_lost_with_the_first_pod(trainer: Trainer):
    gang = trained(trainer, (50, BOTH), (10, {"a": Member()}))
    assert gang.lost == 2 * 150
    assert gang.still == 2 * 10


def test_a_checkpoint_is_written_from_time_to_time():
    gang = trained(READS, (CHECKPOINT_SECONDS - 100 + WRITES_SECONDS + 5, BOTH), (1, {}))
    assert gang.lost == 2 * 5
    assert gang.still == 2 * (WRITES_SECONDS + 1)


def test_a_gang_that_is_told_saves_once_its_file_shows_it():
    seconds = LAG_SECONDS + WRITES_SECONDS
    assert trained(READS, (seconds - 1, TOLD), (1, {})).lost > 2 * 100
    assert trained(READS, (seconds, TOLD), (1, {})).lost == 0
    assert trained(READS, (seconds + 7, TOLD), (1, {})).lost == 2 * 7


def test_a_gang_that_saves_on_sigterm_loses_nothing_if_all_pods_run_until_it_is_done():
    one = {"a": Member(stopping=True), "b": Member()}
    assert trained(SAVES, (50, BOTH), (WRITES_SECONDS, one), (1, {"b": Member()})).lost == 0
    assert trained(SAVES, (50, BOTH), (WRITES_SECONDS - 1, one), (1, {})).lost == 2 * 150
    assert trained(READS, (50, BOTH), (1, one)).lost == 2 * 150


def test_a_new_pod_beside_the_old_ones_begins_at_the_last_checkpoint():
    gang = trained(READS, (50, BOTH), (5, {"b": Member()}), (20, {"b": Member(), "c": Member()}))
    assert (gang.lost, gang.unsaved) == (2 * 150, 20)


@pytest.mark.parametrize(("seconds", "times"), [(TOGETHER_SECONDS, 0), (TOGETHER_SECONDS + 1, 1)])
def test_a_gang_is_half_killed_where_pods_run_on_long_after_the_first_has_ended(seconds, times):
    assert trained(SAVES, (5, BOTH), (seconds, {"b": Member()}), (9, {})).half_killed == times


# --- A replay -----------------------------------------------------------------------------------


ONE_LOST = (4, 3, 3, 3, 4, 4)
ALL_LOST = (4, *[0] * 5)


def played(contender: str, counts: Sequence[int] = ONE_LOST) -> Outcome:
    """Play four instances, of which so many are there minute by minute."""
    [who] = [each for each in CONTENDERS if each.name == contender]
    region = a_region(counts, gap=timedelta(minutes=1))
    [ticks] = stretches(region)
    with Replay(region, ticks, contender=who, trainer=READS, seed=SEED) as replay:
        return replay.outcome()


SEED = 1
"""Takes an instance on which the gang trains."""


@pytest.mark.parametrize("seed", [2, 3])
def test_all_contenders_begin_with_the_same_pods_on_the_same_nodes(seed: int):
    begins = [first_nodes(contender, seed) for contender in CONTENDERS]
    assert begins == [begins[0]] * len(CONTENDERS)
    assert sorted(begins[0]) == [f"spot-us-west-2a-{number}" for number in (1, 2, 3, 4)]


def first_nodes(contender: Contender, seed: int) -> Mapping[str, str]:
    """Return the prefix of the name of the pod on each node at time 0."""

    class Begin(Replay):
        found: Mapping[str, str]

        def _begin(self, zero: datetime) -> None:
            pods = self.rig_clusters[CLUSTER].all("pods")
            self.found = {pod["spec"]["nodeName"]: pod["metadata"]["generateName"] for pod in pods}
            super()._begin(zero)

    region = a_region([4, 3], gap=timedelta(seconds=1))
    [ticks] = stretches(region)
    with Begin(region, ticks, contender=contender, trainer=READS, seed=seed) as replay:
        replay.run()
        return replay.found


def test_plimsoll_tells_the_whole_gang_and_leaves_no_part_of_it_behind():
    ours, theirs = played("Plimsoll"), played("plain drain")
    assert (ours.due, ours.told, ours.half_killed) == (2, 2, 0)
    assert (theirs.due, theirs.told, theirs.half_killed) == (2, 0, 1)
    assert ours.lost < theirs.lost


def test_without_a_notice_and_with_karpenter_the_steps_since_the_last_checkpoint_are_lost():
    for name in ("no notice", "Karpenter"):
        found = played(name)
        assert found.half_killed == 1
        assert found.lost > 2 * 60


def test_where_all_nodes_go_the_orderly_stop_of_the_last_pods_is_all_that_serving_pays_for_it():
    ours = played("Plimsoll", ALL_LOST)
    early = MARGIN.total_seconds() + LEAST_SECONDS
    for name in ("plain drain", "Karpenter"):
        theirs = played(name, ALL_LOST)
        assert (ours.killed, theirs.killed) == (0, 1)
        assert 0 < ours.at_zero < theirs.at_zero + early
        assert ours.serving_lost < theirs.serving_lost
