"""Pods of gangs are told when the first of their nodes goes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, override

import pytest

from plimsoll.adapters.kubernetes import Response
from plimsoll.domain.errors import Temporary
from plimsoll.domain.interruptions import MARGIN
from plimsoll.domain.kubernetes import Ref, gangs
from plimsoll.domain.observation import Sample, Samples
from plimsoll_simulation.fake_aws.stores import MemoryTimes
from tests.support.fake_clusters import MERGE
from tests.support.queue_scenes import Scene, a_bare_pod, a_job, a_training, killed_at_each_write
from tests.unit.batch.services.test_queues import reclaim

TELL = {"plimsoll.dev/on-interruption": "tell"}
TAKES = "plimsoll.dev/checkpoint-takes-seconds"
TRAIN = ("train-ps", "train-workers")
WITHIN = 4.0
"""Seconds: a notice stands on the Node within another second."""


def told_training(*, size: str = "6", takes: int = 0, **pod: Any) -> list[Any]:
    jobs = a_training("train", annotations=TELL | ({TAKES: str(takes)} if takes else {}))
    for job in jobs:
        job["metadata"]["annotations"]["plimsoll.dev/gang-size"] = size
        job["spec"]["template"]["metadata"]["labels"] = {"plimsoll.dev/gang": "train"}
        job["spec"]["template"]["spec"] |= pod
    return jobs


def told(scene: Scene, *jobs: str) -> set[str | None]:
    """Return what stands on the pods of Jobs."""
    notes = (pod["metadata"].get("annotations") or {} for pod in scene.pods_of(*jobs))
    return {each.get("plimsoll.dev/deadline") for each in notes}


def started(*, nodes: int = 8, **more: Any) -> Scene:
    scene = Scene(nodes=nodes)
    scene.submit(*told_training(**more), a_job("other"))
    scene.run()
    assert scene.running(*TRAIN) == 6
    return scene


def node_of(scene: Scene, job: str) -> str:
    node: str = scene.pods_of(job)[0]["spec"]["nodeName"]
    return node


def test_all_pods_of_a_gang_are_told_when_the_first_of_its_nodes_goes():
    scene = started()
    reclaim(scene, node_of(scene, "train-workers"), minutes=5)
    first = scene.clock.now() + timedelta(minutes=2) - MARGIN
    reclaim(scene, node_of(scene, "train-ps"), minutes=2)
    scene.run()
    assert told(scene, *TRAIN) == {f"{first:%Y-%m-%dT%H:%M:%SZ}"}
    assert told(scene, "other") == {None}
    assert scene.running(*TRAIN) == 6


@pytest.mark.parametrize("pause", [10 + 0.5 * half for half in range(10)])
def test_a_gang_is_told_within_five_seconds_though_another_waits(pause: float):
    scene = started()
    scene.submit(a_job("large", 50))
    seen: list[set[str | None]] = []
    notice = partial(reclaim, scene, node_of(scene, "train-ps"))

    def look() -> None:
        seen.append(told(scene, *TRAIN))

    with scene.clock.repeating(notice, pause), scene.clock.repeating(look, pause + WITHIN):
        scene.run(2 * pause - 1)  # each comes once
    assert len(seen) == 1
    assert None not in seen[0]


def test_what_was_told_is_not_written_again():
    scene = started()
    reclaim(scene, node_of(scene, "train-ps"))
    scene.run()
    writes: list[str] = []
    scene.wire.before = lambda _, path, __: writes.append(path)
    scene.run(10)
    assert writes == []


def test_it_is_taken_off_once_no_node_of_the_gang_is_reclaimed_any_more():
    scene = started()
    node = node_of(scene, "train-ps")
    reclaim(scene, node)
    scene.run()
    off = {"metadata": {"annotations": {"plimsoll.dev/interruption": None}}}
    assert scene.play.call("PATCH", f"/api/v1/nodes/{node}", off, MERGE).status == 200
    scene.run()
    assert told(scene, *TRAIN) == {None}


def test_a_cycle_tells_a_bounded_number_of_pods_and_the_next_the_others(monkeypatch):
    monkeypatch.setattr(gangs, "MOST_TOLD", 4)
    scene = started()
    reclaim(scene, node_of(scene, "train-ps"))
    scene.run(1)
    assert None in told(scene, *TRAIN)
    scene.run(1)
    assert None not in told(scene, *TRAIN)


def test_a_bare_pod_is_told_as_well():
    scene = Scene(nodes=1)
    scene.submit(a_bare_pod("one", annotations=TELL))
    scene.run()
    reclaim(scene, "n0")
    scene.run()
    notes = scene.play.get("/api/v1/namespaces/lab/pods/one")["metadata"]["annotations"]
    assert "plimsoll.dev/deadline" in notes


def test_queues_go_on_where_pods_cannot_be_told():
    scene = started()
    call = scene.wire.call

    def denied(method: str, path: str, **more: Any) -> Response:
        if method == "PATCH" and "/pods/" in path:
            return Response(status=403, body={"kind": "Status", "message": "no"})
        answer: Response = call(method, path, **more)
        return answer

    scene.wire.call = denied  # type: ignore[method-assign] # it listens
    reclaim(scene, node_of(scene, "train-ps"))
    scene.submit(a_job("next"))
    scene.run(10)
    assert scene.running("next") == 1
    assert any(message == "pods not told their deadline" for message, _ in scene.heard.said)


def test_pods_without_the_label_that_the_right_is_held_to_are_refused_by_name():
    scene = Scene(nodes=1)
    scene.submit(a_job("one", annotations=TELL))
    scene.run()
    assert scene.suspended("one")
    assert any("its pods need the label" in event for event in scene.events("one"))


def test_a_told_gang_is_suspended_whole_before_the_first_of_its_pods_has_to_stop():
    scene = started(nodes=7, terminationGracePeriodSeconds=40)
    reclaim(scene, node_of(scene, "train-ps"))
    scene.run(70)
    assert scene.running(*TRAIN) == 6
    scene.run(10)  # its pods have 40 s to stop, and the drain evicts the first of them then
    assert [scene.suspended(job) for job in TRAIN] == [True, True]
    assert all(pod["metadata"].get("deletionTimestamp") for pod in scene.pods_of(*TRAIN))


def test_a_gang_that_goes_on_with_fewer_pods_is_told_and_not_suspended():
    scene = started(size="5:6")
    reclaim(scene, node_of(scene, "train-ps"))
    scene.run(150)
    assert not any(scene.suspended(job) for job in TRAIN)
    assert None not in told(scene, *TRAIN)


def test_a_gang_that_would_be_left_with_too_few_pods_is_suspended_whole():
    scene = started(nodes=7, size="5:6")
    for job in TRAIN:
        reclaim(scene, node_of(scene, job))
    scene.run(150)
    assert all(scene.suspended(job) for job in TRAIN)


def test_a_gang_goes_on_without_a_pod_that_finds_no_place():
    scene = Scene(nodes=6)
    scene.submit(*told_training(size="5:6"))
    scene.run()
    scene.play.call("DELETE", f"/api/v1/nodes/{node_of(scene, 'train-ps')}")
    scene.run(400)
    assert scene.running(*TRAIN) == 5
    assert not any(scene.suspended(job) for job in TRAIN)


@pytest.mark.parametrize(("takes", "fits"), [(50, True), (60, False)])
def test_a_gang_is_told_while_a_checkpoint_fits_a_minute_after_it_is_told(takes, fits):
    scene = started(nodes=7, takes=takes)
    reclaim(scene, node_of(scene, "train-ps"))
    scene.run(80)
    assert (None not in told(scene, *TRAIN)) == fits
    scene.run(30)
    assert scene.running(*TRAIN) == 0


TRAINING = Ref("QueuedGang", "lab", "train")


class Remembered(MemoryTimes):
    """A store that knows how long after the notice the pods of earlier runs had ended, and counts what it is asked."""

    def __init__(self, scene: Scene, seconds: int) -> None:
        super().__init__()
        sample = Sample(uid="of-yesterday", at=scene.clock.now(), seconds=seconds)
        self.merge("harbor", TRAINING, Samples(checkpoint=(sample,)))
        self.asked: list[Ref] = []
        self.away = False

    @override
    def read(self, cluster: str, workloads: Collection[Ref]) -> Mapping[Ref, Samples]:
        self.asked += workloads
        if self.away:
            raise Temporary("the database does not answer")
        return super().read(cluster, workloads)


def remembering(seconds: int, *, takes: int = 0) -> tuple[Scene, Remembered]:
    scene = started(nodes=7, takes=takes)
    scene.times = Remembered(scene, seconds)
    reclaim(scene, node_of(scene, "train-ps"))
    return scene, scene.times


@pytest.mark.parametrize(("seconds", "fits"), [(100, True), (130, False)])
def test_a_gang_is_told_while_what_was_observed_of_earlier_runs_fits(seconds, fits):
    scene, times = remembering(seconds)
    scene.run()
    assert (None not in told(scene, *TRAIN)) == fits
    assert times.asked == [TRAINING]


@pytest.mark.parametrize(("takes", "fits"), [(50, True), (60, False)])
def test_what_the_owner_states_counts_and_nothing_observed_is_read(takes, fits):
    scene, times = remembering(130 if fits else 1, takes=takes)
    scene.run()
    assert (None not in told(scene, *TRAIN)) == fits
    assert times.asked == []


def test_a_gang_is_told_where_nobody_can_say_what_was_observed_and_a_run_asks_once():
    scene, times = remembering(130)
    times.away = True
    scene.run()
    assert None not in told(scene, *TRAIN)
    assert times.asked == [TRAINING]
    assert [said for said, _ in scene.heard.said].count("observed times not read") == 1


@pytest.mark.parametrize("size", ["7:6", "0:6", "a:6", "1:2:6"])
def test_a_size_that_nobody_can_read_holds_the_gang(size):
    scene = Scene(nodes=8)
    scene.submit(*told_training(size=size))
    scene.run()
    assert scene.suspended("train-ps")
    assert any("plimsoll.dev/gang-size" in event for event in scene.events("train-ps"))


@pytest.mark.parametrize("after", [True, False], ids=["after the write", "before the write"])
def test_killed_at_any_write_all_pods_are_told(after):
    def reclaimed() -> Scene:
        scene = started()
        reclaim(scene, node_of(scene, "train-ps"))
        return scene

    def tell(scene: Scene) -> None:
        scene.run(2)
        scene.run(30)  # the Lease of who was killed ends
        scene.run(2)

    ends = {
        where: told(scene, *TRAIN)
        for where, scene in killed_at_each_write(reclaimed, tell, after=after)
    }
    assert len(ends) >= 6
    assert [where for where, said in ends.items() if None in said or len(said) != 1] == []
