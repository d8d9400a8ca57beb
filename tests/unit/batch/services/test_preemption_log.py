"""Each preemption is kept once, whoever dies or fails in between, and is told to people."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from plimsoll_batch.services.preemption_log import MOST_WRITES, PreemptionLog
from tests.contract.test_preemption_history import FIRST
from tests.support.cli_environment import MemoryEnvironment, run
from tests.support.preemptions import MemoryPreemptions
from tests.support.queue_scenes import KilledError, Scene, a_job

URGENT = {"plimsoll.dev/priority": "5"}


@pytest.fixture
def scene() -> Scene:
    """A gang runs on all nodes, and an urgent one waits."""
    found = Scene(nodes=2)
    found.submit(a_job("first", 2))
    found.run()
    found.submit(a_job("urgent", 2, annotations=URGENT))
    return found


def kept(scene: Scene) -> list[tuple[str, str, str]]:
    found = scene.preemptions.list("harbor", limit=9)
    return [(record.gang, record.by, record.queue) for record in found]


def test_a_preemption_is_kept_once_and_told_with_by_whom_when_and_why(scene):
    scene.run(10)
    scene.run(10)
    assert kept(scene) == [("lab/first", "lab/urgent", "lab")]
    environment = MemoryEnvironment(history=scene.preemptions, transports={"harbor": scene.wire})
    environment.clock.time = scene.clock.time
    [row] = json.loads(
        run(environment, "queues", "history", "--cluster", "harbor", "-o", "json").stdout
    )
    assert (row["gang"], row["by"]) == ("lab/first", "lab/urgent")
    said = run(environment, "jobs", "why", "lab/first").stdout
    assert "it was preempted by lab/urgent at 2" in said
    assert row["reason"] in said
    asked = ("queues", "history", "--cluster", "harbor", "--queue", "other")
    assert "no preemption" in run(environment, *asked).stdout


def test_a_planner_that_dies_after_the_patch_leaves_it_to_the_next(scene):
    def kill(method: str, path: str, _: object) -> None:
        if method == "PATCH" and path.endswith("/first"):
            raise KilledError

    scene.wire.after = kill
    scene.run()
    assert scene.suspended("first")
    assert kept(scene) == []
    scene.wire.after = lambda *_: None
    scene.clock.sleep(15)  # until its Lease has run out
    scene.run()
    assert kept(scene) == [("lab/first", "lab/urgent", "lab")]


def test_a_table_that_is_away_holds_no_gang_up_and_is_made_up_for(scene):
    scene.preemptions.away = True
    scene.run(10)
    assert scene.running("urgent") == 2
    assert "preemption not recorded" in [message for message, _ in scene.heard.said]
    scene.preemptions.away = False
    scene.run()
    assert kept(scene) == [("lab/first", "lab/urgent", "lab")]


@pytest.mark.parametrize("age", [timedelta(days=2), timedelta(seconds=-1)])
def test_what_is_long_past_or_to_come_is_not_believed(age):
    history = MemoryPreemptions()
    log = PreemptionLog(history=history, telemetry=Scene(nodes=0).heard)
    log.keep("harbor", [FIRST], FIRST.at + age)
    assert not history.kept
    log.keep("harbor", [FIRST] * (MOST_WRITES + 1), FIRST.at)
    assert len(history.kept) == 1
