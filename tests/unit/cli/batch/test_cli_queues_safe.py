"""`plimsoll queues apply` and `check`: what a file changes, and what of it is refused with its place and its cure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll_batch.domain.quota.amounts import amount_text
from tests.support.cli_environment import MemoryEnvironment, run
from tests.support.queue_scenes import ONE_QUEUE, Scene, a_job

QUEUES: Any = yaml.safe_load(ONE_QUEUE)
KUEUE = Path(__file__).with_name("kueue.yaml")


class Desk:
    """Somebody who keeps the queues of a cluster, and their file."""

    def __init__(self, folder: Path) -> None:
        self.scene = Scene(nodes=2)
        self.environment = MemoryEnvironment(transports={"harbor": self.scene.wire})
        self.environment.clock.time = self.scene.clock.time
        self._file = folder / "queues.yaml"

    def applies(self, document: Any, *words: str, answer: str | None = None):
        text = document if isinstance(document, str) else yaml.safe_dump(document, sort_keys=False)
        self._file.write_text(text)
        typed = ("queues", "apply", "-f", str(self._file), *words)
        return run(self.environment, *typed, **({} if answer is None else {"input": answer}))

    def checks(self, document: Any, *words: str):
        text = document if isinstance(document, str) else yaml.safe_dump(document, sort_keys=False)
        self._file.write_text(text)
        return run(self.environment, "queues", "check", "-f", str(self._file), *words)

    @property
    def kept(self) -> Any:
        path = "/api/v1/namespaces/plimsoll/configmaps/plimsoll-queues"
        return json.loads(self.scene.play.call("GET", path).body["data"]["queues.json"])


@pytest.fixture
def desk(tmp_path) -> Desk:
    return Desk(tmp_path)


def a_queue(name: str = "q", **quota: Any) -> dict[str, Any]:
    flavors = [
        {"name": "f", "resources": {k.replace("_", "/"): {"nominal": v} for k, v in quota.items()}}
    ]
    return {"name": name, "resourceGroups": [{"flavors": flavors}]}


def a_file(*queues: Any, flavor: Any = (), **more: Any) -> dict[str, Any]:
    return {
        "flavors": [{"name": "f", **dict(flavor)}],
        "queues": [*queues] or [a_queue(cpu=1)],
        **more,
    }


def changed(**more: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(QUEUES))
    document["queues"][0] |= more
    return document


def test_apply_shows_what_changes_and_writes_after_yes(desk):
    name = QUEUES["queues"][0]["name"]
    result = desk.applies(changed(stopped=True), answer="y\n")
    assert result.exit_code == 0, result.output
    assert f"+ queue {name}: stopped True" in result.output
    assert desk.kept["queues"][0]["stopped"] is True


def test_apply_writes_nothing_without_yes(desk):
    before = desk.kept
    assert desk.applies(changed(stopped=True), answer="n\n").exit_code == 1
    assert desk.kept == before


def test_a_queue_in_which_gangs_run_cannot_go(desk):
    desk.scene.submit(a_job("one"))
    desk.scene.run()
    name, before = QUEUES["queues"][0]["name"], desk.kept
    document = json.loads(json.dumps(QUEUES))
    document["queues"][0]["name"] = "other"
    result = desk.applies(document, "--yes")
    assert result.exit_code == 2
    assert (
        f"queue {name}: cannot go while gangs run in it (lab/one): set stopped: true"
        in result.output
    )
    assert desk.kept == before


def test_a_queue_in_which_gangs_wait_goes_with_a_warning(desk):
    desk.scene.submit(a_job("one"))
    document = json.loads(json.dumps(QUEUES))
    document["queues"][0]["name"] = "other"
    result = desk.applies(document, "--yes")
    assert result.exit_code == 0, result.output
    assert "lab/one will wait in no queue" in result.output


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("", "the file is empty"),
        ("# nothing\n", "the file is empty"),
        ({"flavors": [{"name": "f"}]}, "queues: names none"),
        ("queues: [{name: a}]\nqueues: [{name: b}]\n", "line 2: the key queues stands there twice, first in line 1"),
        ('{"queues": [{"name": "a", "name": "b"}]}', "line 1: the key name stands there twice"),
        (a_file(a_queue("Bad Name!", cpu=1)), "queue 'Bad Name!': name: a Job names it by a label"),
        (a_file(a_queue("x" * 64, cpu=1)), "a Job names it by a label"),
        (a_file(flavor={"nodeLabels": {"a b": "c"}}), "no Node can carry 'a b': 'c'"),
        (a_file(flavor={"taints": [{"key": "k", "effect": "NoRun"}]}), "taints: effect 'NoRun': Kubernetes knows NoSchedule"),
        (a_file(flavor={"tolerations": [{"key": "k", "operator": "Is"}]}), "operator 'Is': write Exists or Equal"),
        (a_file(a_queue(nvidia_gpu="0.5")), "nominal 0.5: a pod requests whole pieces of nvidia/gpu"),
        (a_file(a_queue(nvidia_gpu="500m")), "whole pieces"),
        (a_file(a_queue(cpu="4Ti")), "is more than any cluster has, at most 10000000"),
        (a_file(a_queue(memory="64")), "is 64 bytes: write a unit, such as 64Gi"),
        (a_file(a_queue(memory="500m")), "is a fraction of a byte"),
        (a_file(a_queue(cpu="0.1m")), "finer than a thousandth of a core"),
        (a_file(topologyLevels=["a/b/c"]), "topologyLevels: 'a/b/c' is no key of a label"),
        (a_file(priorities={"5": 1}), "priorities: 5: is a number"),
        ({"queues": [{"nmae": "a"}]}, "queues.0.nmae: is no field here: did you mean name?"),
        ({"queues": [{"name": "a", "order": "LIFO"}]}, "must be StrictFIFO or BestEffortFIFO, not 'LIFO'"),
        (a_file() | {"cohort": []}, "cohort: is no field here: did you mean cohorts?"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_with_its_place_and_its_cure(desk, document, words):
    result = desk.checks(document)
    assert result.exit_code == 2
    assert words in result.output


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 4000, "4"),
        ("memory", 64 * 2**30, "64Gi"),
        ("memory", 3 * 2**29, "1.5Gi"),
        ("memory", 10, "10"),
        ("nvidia.com/gpu", 8, "8"),
    ],
)
def test_amounts_carry_units(resource, amount, text):
    assert amount_text(resource, amount) == text


def test_objects_of_kueue_become_a_file_of_queues(desk):
    result = desk.checks(KUEUE.read_text(), "--print")
    assert result.exit_code == 0, result.output
    made = yaml.safe_load(result.stdout)
    assert made == {
        "flavors": [
            {"name": "spot", "nodeLabels": {"capacity": "spot"}, "taints": [{"key": "spot"}]}
        ],
        "cohorts": [{"name": "lab"}],
        "queues": [
            {
                "name": "research",
                "cohort": "lab",
                "access": "labelled",
                "preemption": {"withinQueue": "LowerPriority"},
                "resourceGroups": [
                    {
                        "flavors": [
                            {
                                "name": "spot",
                                "resources": {"cpu": {"nominal": "9", "borrowingLimit": "3"}},
                            }
                        ]
                    }
                ],
            }
        ],
    }
    notes = result.stderr
    assert "kubectl label namespace -l team=a queues.plimsoll.dev/research=true" in notes
    assert "kubectl label namespace lab queues.plimsoll.dev/research=true" in notes


def test_what_kueue_has_and_plimsoll_has_not_is_refused_by_name(desk):
    text = KUEUE.read_text().replace(
        "  cohort: lab\n", "  cohort: lab\n  admissionChecks: [prov]\n"
    )
    result = desk.checks(text)
    assert result.exit_code == 2
    assert "ClusterQueue research: spec.admissionChecks: is no field here" in result.output
