"""`plimsoll jobs submit` says at once what would hold Jobs for ever, and creates none of them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from plimsoll.adapters.kubernetes import Response
from tests.support.cli_environment import MemoryEnvironment, run
from tests.support.queue_scenes import JOBS, ONE_QUEUE, Scene, a_job

LABELLED = ONE_QUEUE.replace("- name: lab", "- name: lab\n    access: labelled\n    maxPriority: 5")
NAMED = f"{ONE_QUEUE}priorities: {{prod: 1000, dev: 0}}\n"
JOBSET = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: net, namespace: lab, labels: {plimsoll.dev/queue: lab}}
spec:
  replicatedJobs:
    - name: workers
      template: {spec: {parallelism: 2, completions: 2, template: {spec: {containers: [{name: m, image: x}]}}}}
"""


class Desk:
    """A person who submits."""

    def __init__(self, folder: Any, queues: str = ONE_QUEUE) -> None:
        self.scene = Scene(nodes=2, queues=queues)
        self._file = folder / "job.yaml"

    def submits(self, document: Any, *words: str) -> Any:
        self._file.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
        environment = MemoryEnvironment(transports={"harbor": self.scene.wire})
        environment.clock.time = self.scene.clock.time
        return run(environment, "jobs", "submit", "-f", str(self._file), *words)

    @property
    def jobs(self) -> list[str]:
        return [job["metadata"]["name"] for job in self.scene.play.get(JOBS)["items"]]

    def refused(self, document: Any, *words: str) -> str:
        result = self.submits(document, *words)
        assert result.exit_code == 2, result.output
        assert not self.jobs
        return str(result.output)


def noted(**annotations: str) -> Any:
    marks = {f"plimsoll.dev/{k.replace('_', '-')}": v for k, v in annotations.items()}
    return a_job("one", annotations=marks)


def in_jobset(metadata: Any) -> Any:
    document = yaml.safe_load(JOBSET)
    document["metadata"] |= metadata
    return document


@pytest.mark.parametrize(
    ("queues", "job", "words"),
    [
        (ONE_QUEUE, a_job("one", queue="lob"), "there is no queue lob: did you mean lab? (queues: lab)"),
        (ONE_QUEUE, a_job("one", 4, cpu="400"), "it wants 1600 cpu and the queue can never have more than 1000"),
        (ONE_QUEUE, noted(topology="rack"), "annotation plimsoll.dev/topology: must be required=LABEL"),
        (ONE_QUEUE, noted(toplogy="required=a/b"), "plimsoll.dev/toplogy: Plimsoll reads no such name: did you mean plimsoll.dev/topology?"),
        (ONE_QUEUE, noted(gang="g"), "plimsoll.dev/gang: is a label, and stands among the annotations"),
        (ONE_QUEUE, noted(priority="prod"), "must be a whole number: the queues have no named priorities, not prod"),
        (NAMED, noted(priority="prd"), "must be one of prod, dev, not prd"),
        (LABELLED, a_job("one"), "namespace lab may not use queue lab"),
    ],
)  # fmt: skip
def test_what_would_wait_for_ever_is_refused(tmp_path, queues, job, words):
    assert words in Desk(tmp_path, queues).refused(job)


def test_what_only_has_to_wait_is_created(tmp_path):
    desk = Desk(tmp_path)
    assert desk.submits(a_job("one", 900)).exit_code == 0
    assert desk.jobs == ["one"]


def test_a_priority_above_that_of_the_queue_is_said_and_created(tmp_path):
    desk = Desk(tmp_path, LABELLED)
    granted = {"metadata": {"labels": {"queues.plimsoll.dev/lab": "true"}}}
    desk.scene.play.patch("/api/v1/namespaces/lab", granted)
    result = desk.submits(noted(priority="9"))
    assert result.exit_code == 0
    assert "its priority 9 counts as 5: queue lab allows no more" in result.stderr


def test_a_name_of_a_priority_may_be_given(tmp_path):
    desk = Desk(tmp_path, NAMED)
    assert desk.submits(a_job("one"), "--priority", "prod").exit_code == 0
    assert desk.scene.job("one")["metadata"]["annotations"]["plimsoll.dev/priority"] == "prod"


def test_whoever_may_not_read_the_queues_submits_with_a_warning(tmp_path):
    desk = Desk(tmp_path)
    answered = desk.scene.wire.call

    def call(method: str, path: str, **more: Any) -> Response:
        if "configmaps" in path:
            return Response(status=403, body={"message": "no right"})
        return answered(method, path, **more)

    desk.scene.wire.call = call  # type: ignore[method-assign] # a right is missing
    result = desk.submits(a_job("one", queue="lob"))
    assert result.exit_code == 0
    assert "nobody checks whether the queue exists" in result.stderr


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        (
            {"annotations": {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}},
            "metadata.annotations: alpha.jobset.sigs.k8s.io/exclusive-topology: no rule keeps other gangs out",
        ),
        ({"labels": {"app": "x"}}, "metadata.labels: app: is not carried over"),
        (
            {"labels": {"kueue.x-k8s.io/queue-name": "lab"}},
            "kueue.x-k8s.io/queue-name: write the label plimsoll.dev/queue",
        ),
        ({"annotations": {"plimsoll.dev/topolgy": "x"}}, "did you mean plimsoll.dev/topology?"),
    ],
)
def test_what_is_not_understood_of_a_jobset_is_refused_by_name(tmp_path, metadata, words):
    assert words in Desk(tmp_path).refused(in_jobset(metadata))


def test_a_jobset_with_a_generated_name_is_submitted(tmp_path):
    desk, document = Desk(tmp_path), yaml.safe_load(JOBSET)
    document["metadata"]["generateName"] = f"{document['metadata'].pop('name')}-"
    assert desk.submits(document).exit_code == 0
    (name,) = desk.jobs
    assert name.startswith("net-")
    assert name.endswith("-workers-0")
