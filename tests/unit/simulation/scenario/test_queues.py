"""Batch queues of a drill's cluster: a mistake in their file is named, and other rigs refuse them."""

from __future__ import annotations

from pathlib import Path

import pytest

from plimsoll_simulation.scenario.capabilities import unsupported
from plimsoll_simulation.scenario.drill import read_drill
from plimsoll_simulation.scenario.problems import BadScenario
from tests.support.gpu_tenancy import FOLDER


def changed(folder: Path, queues: str | None) -> Path:
    """Write the drill of the example with another file of queues."""
    for file in FOLDER.glob("*.yaml"):
        (folder / file.name).write_text(file.read_text())
    if queues is None:
        (folder / "queues.yaml").unlink()
    else:
        (folder / "queues.yaml").write_text(queues)
    return folder / "drill.yaml"


@pytest.mark.parametrize(
    ("queues", "words"),
    [
        ("queues: [{name: a, cohort: none}]", "queue a: cohort: there is no cohort none"),
        ("queues: []\n---\nqueues: []", "found a second document"),
        (None, "no file"),
    ],
    ids=["a wrong cohort", "two documents", "no file"],
)
def test_a_mistake_in_the_file_of_queues_is_named(tmp_path, queues, words):
    with pytest.raises(BadScenario, match=r"queues\.yaml") as error:
        read_drill(changed(tmp_path, queues))
    assert words in str(error.value)


def test_a_rig_without_a_planner_refuses_queues_by_name():
    scenario = read_drill(FOLDER / "drill.yaml").scenario
    assert unsupported(scenario, "simulated") == []
    [problem] = unsupported(scenario, "cluster")
    assert problem.found == "batch queues, which the rig cluster cannot plan yet"
