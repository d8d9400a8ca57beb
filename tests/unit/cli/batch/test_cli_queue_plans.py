"""`plimsoll queues plan` and `why` on a cluster: what it would do with its own queues, or with a changed file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from tests.support.cli_environment import MemoryEnvironment, run
from tests.support.queue_scenes import ONE_QUEUE, Scene, a_job

URGENT = {"plimsoll.dev/priority": "5"}


@pytest.fixture
def scene() -> Scene:
    """A gang runs on all nodes; an urgent one and many others wait."""
    found = Scene(nodes=2, queues=ONE_QUEUE.replace("LowerPriority", "Never"))
    found.submit(a_job("runs", 2))
    found.run()
    found.submit(a_job("urgent", 2, annotations=URGENT))
    return found


def changed(folder: Path, **queue: Any) -> str:
    """Return a file of queues that differs from that of the cluster."""
    said = yaml.safe_load(ONE_QUEUE)
    said["queues"][0] |= queue
    file = folder / "changed.yaml"
    file.write_text(yaml.safe_dump(said))
    return str(file)


def typed(scene: Scene, *words: str) -> Result:
    environment = MemoryEnvironment(transports={"harbor": scene.wire})
    environment.clock.time = scene.clock.time
    return run(environment, "queues", *words)


def test_a_changed_file_shows_what_it_would_preempt_and_changes_nothing(scene, tmp_path):
    writes: list[str] = []
    scene.wire.before = lambda method, path, _: writes.append(f"{method} {path}")
    assert typed(scene, "plan").stdout.startswith("reserve   lab/urgent: has quota")
    result = typed(scene, "plan", "-f", changed(tmp_path))
    assert result.stdout.splitlines()[0].startswith("preempt   lab/urgent (any): lab/runs make way")
    (row,) = json.loads(typed(scene, "plan", "-f", changed(tmp_path), "-o", "json").stdout)
    assert (row["flavors"], row["victims"][0]["gang"]) == ({"job": ["any"]}, "lab/runs")
    assert writes == []


def test_why_answers_for_the_changed_file(scene, tmp_path):
    scene.submit(a_job("late", queue="night"))
    assert "there is no queue night" in typed(scene, "why", "lab/late").stdout
    scene.play.nodes("n9", cpu="1")
    result = typed(scene, "why", "lab/late", "-f", changed(tmp_path, name="night"))
    assert "It fits now in flavor any: it starts when its turn comes." in result.stdout
    assert "these run in queues that the file does not have: lab/runs" in result.stderr
    assert typed(scene, "why", "lab/runs").exit_code == 1


def test_a_long_plan_is_cut_to_a_screen_and_counts_what_is_left_out(scene):
    scene.play.apply(*(a_job(f"odd-{n}", n + 3) for n in range(50)))
    scene.clock.sleep(1)
    lines = typed(scene, "plan").stdout.splitlines()
    assert len(lines) == 40
    assert lines[-1] == "and more gangs (wait 12): --verbose shows them"
    assert len(typed(scene, "plan", "--verbose").stdout.splitlines()) == 51
    assert len(json.loads(typed(scene, "plan", "-o", "json").stdout)) == 51


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        (["--snapshot", __file__], "--snapshot needs --file"),
        (["-f", __file__, "--snapshot", __file__, "--context", "x"], "is not YAML"),
        (["--at", "2026-11-17T14:00:00Z"], "--at needs --snapshot"),
    ],
)
def test_options_that_contradict_each_other_are_refused(scene, words, cure):
    result = typed(scene, "plan", *words)
    assert result.exit_code == 2
    assert cure in result.stderr
