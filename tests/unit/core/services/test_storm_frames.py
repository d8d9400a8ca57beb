"""Frames are made beside the drain: whatever becomes of them, no drain waits or ends because of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.domain.actions import Release
from plimsoll.domain.drain import plan_drain
from plimsoll.services import storm_frames
from plimsoll.services.storm_frames import StormFrames
from plimsoll_simulation.fake_aws.stores import MemoryFrames
from tests.support.builders import a_deployment, a_node, a_pod
from tests.support.observations import interrupted, looked, noon


class Warnings:
    """The port `Telemetry`, with the warnings that were given."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def log(self, message: str, **facts: object) -> None: ...

    def count(self, metric: object, value: float = 1, *, cluster: str | None = None) -> None: ...

    def warn(self, message: str, **facts: object) -> None:
        self.given.append(f"{message}: {facts['because']}")


def plan(seconds: float, *, calm: bool = False):
    nodes = [a_node("od")] if calm else [interrupted("spot"), a_node("od")]
    pods = [a_pod("web-1", node="od" if calm else "spot")]
    return plan_drain(looked(nodes, pods, [a_deployment(replicas=1)]), noon(seconds))


def frames(sink: MemoryFrames | None) -> StormFrames:
    return StormFrames(cluster="harbor", sink=sink, telemetry=Warnings())


def test_a_frame_is_made_of_each_plan_of_a_storm_and_of_its_end_once():
    sink = MemoryFrames()
    shown = frames(sink)
    for seconds in (1, 2):
        shown.show(plan(seconds), (), {})
    for seconds in (130, 131):
        shown.show(plan(seconds, calm=True), (), {})
    assert [(frame.number, frame.over) for frame in sink.of["harbor"]] == [
        (1, False),
        (2, False),
        (3, True),
    ]


def test_another_reconcile_goes_on_with_the_last_frame():
    sink = MemoryFrames()
    frames(sink).show(plan(1), (), {})
    frames(sink).show(plan(2), (), {})
    assert [frame.number for frame in sink.of["harbor"]] == [1, 2]


def test_nothing_is_made_where_nobody_watches_or_no_node_goes():
    frames(None).show(plan(1), (), {})
    sink = MemoryFrames()
    frames(sink).show(plan(1, calm=True), (), {})
    assert sink.of["harbor"] == []


def test_while_pods_are_to_be_told_to_stop_a_frame_of_all_that_was_done_is_made_each_ten_seconds():
    sink = MemoryFrames()
    shown = frames(sink)
    for seconds in (1, 5, 12):
        done = plan(seconds).actions[:1]
        assert isinstance(done[0], Release)
        shown.show(replace(plan(seconds), hurried=True), done, {})
    assert [frame.seconds for frame in sink.of["harbor"]] == [1, 12]
    assert [line.words for line in sink.of["harbor"][-1].lines] == [
        "Began to replace: 1 pod",
        "Began to replace: 2 pods",
    ]


def test_a_fault_in_a_frame_costs_the_frame_alone(monkeypatch: pytest.MonkeyPatch):
    def failing(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(storm_frames, "frame_of", failing)
    sink = MemoryFrames()
    shown = frames(sink)
    shown.show(plan(1), (), {})
    assert sink.of["harbor"] == []
    telemetry = shown.telemetry
    assert isinstance(telemetry, Warnings)
    assert telemetry.given == ["frame not made: ZeroDivisionError('a bug')"]
