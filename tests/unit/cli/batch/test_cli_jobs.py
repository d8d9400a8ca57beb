"""`plimsoll jobs`: submit, list, why, suspend, resume and cancel on a cluster with queues."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from click.testing import Result

from plimsoll.adapters.kubernetes import Response
from tests.support.cli_environment import MemoryEnvironment, run
from tests.support.queue_scenes import Scene, a_bare_pod, a_training


class Desk:
    """A person at a terminal, and the cluster."""

    def __init__(self, nodes: int = 6) -> None:
        self.scene = Scene(nodes=nodes, pod_stop=1)
        self.environment = MemoryEnvironment(transports={"harbor": self.scene.wire})

    def types(self, *words: str) -> Result:
        self.environment.clock.time = self.scene.clock.time
        return run(self.environment, *words)


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def manifests(tmp_path):
    """Two Jobs that name neither queue nor gang."""
    jobs = a_training("train")
    for job in jobs:
        del job["metadata"]["labels"], job["metadata"]["annotations"], job["spec"]["suspend"]
    file = tmp_path / "train.yaml"
    file.write_text(yaml.safe_dump_all(jobs))
    return file


def submitted(desk: Desk, manifests) -> Result:
    return desk.types("jobs", "submit", "-f", str(manifests), "--queue", "lab", "--gang", "train")


def test_submitted_jobs_wait_as_a_gang_of_their_size_and_start(desk, manifests):
    result = submitted(desk, manifests)
    assert result.exit_code == 0, result.output
    assert desk.scene.job("train-ps")["metadata"]["annotations"]["plimsoll.dev/gang-size"] == "6"
    assert desk.scene.suspended("train-ps")
    desk.scene.run()
    assert desk.scene.running("train-ps", "train-workers") == 6


def test_a_job_with_a_generated_name_is_submitted_under_the_name_that_it_gets(desk, tmp_path):
    (job, _), file = a_training("train"), tmp_path / "sample.yaml"
    del job["metadata"]["labels"], job["metadata"]["annotations"]
    job["metadata"]["generateName"] = f"{job['metadata'].pop('name')}-"
    file.write_text(yaml.safe_dump(job))
    result = desk.types("jobs", "submit", "-f", str(file), "--queue", "lab")
    assert result.exit_code == 0, result.output
    (said,) = result.output.splitlines()
    name = said.removeprefix("Job lab/").partition(" ")[0]
    assert name.startswith("train-ps-")
    assert desk.scene.job(name)["metadata"]["labels"]["plimsoll.dev/queue"] == "lab"


def test_where_one_job_is_refused_none_is_left(desk, manifests):
    desk.scene.submit(a_training("train")[1])
    assert submitted(desk, manifests).exit_code == 2
    desk.scene.clock.sleep(1)
    assert desk.scene.play.call("GET", "/apis/batch/v1/namespaces/lab/jobs/train-ps").status == 404


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: Pod", "must be a Job"),
        ("", "must hold 1 to 100 Jobs"),
        ("a: [", "is not YAML"),
        ("{apiVersion: batch/v1, kind: Job, metadata: {name: x}}", "names no queue"),
        (
            "{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {parallelism: many}}",
            "must be a whole number",
        ),
    ],
)
def test_what_cannot_be_submitted_is_refused_by_name(desk, tmp_path, text, words):
    file = tmp_path / "wrong.yaml"
    file.write_text(text)
    result = desk.types("jobs", "submit", "-f", str(file))
    assert result.exit_code == 2
    assert words in result.output


def test_jobs_lists_what_runs_and_what_waits(desk):
    desk.scene.submit(*a_training("one"))
    desk.scene.run()
    desk.scene.submit(*a_training("two"))
    rows = json.loads(desk.types("jobs", "--output", "json").output)
    assert [(row["gang"], row["state"], row["running"], row["pods"]) for row in rows] == [
        ("lab/one", "running", 6, 6),
        ("lab/two", "waiting", 0, 6),
    ]
    assert "lab/two" in desk.types("jobs").output


def test_why_says_what_a_gang_waits_for(desk):
    desk.scene.submit(*a_training("one"))
    desk.scene.run()
    desk.scene.submit(*a_training("two"))
    result = desk.types("jobs", "why", "lab/two")
    assert "0 of 2 pods have a place" in result.output
    assert "It starts once these ended: lab/one" in result.output
    assert desk.types("jobs", "why", "lab/one").output == "lab/one: running\n"
    told = json.loads(desk.types("jobs", "why", "lab/two", "--output", "json").output)
    assert (told["queue"], told["state"], told["after"]) == ("lab", "waiting", ["lab/one"])
    told = json.loads(desk.types("jobs", "why", "lab/one", "--output", "json").output)
    assert told == {"gang": "lab/one", "state": "running", "not_leased": None, "preempted": None}


def test_why_says_which_right_to_lease_nodes_is_missing_and_what_gives_it(desk):
    call = desk.scene.wire.call

    def denied(method: str, path: str, **more: Any) -> Response:
        if method == "PATCH" and path.startswith("/api/v1/nodes/"):
            message = 'User "planner" cannot patch resource "nodes"'
            return Response(status=403, body={"kind": "Status", "message": message})
        answer: Response = call(method, path, **more)
        return answer

    desk.scene.wire.call = denied
    desk.scene.submit(*a_training("train", annotations={"plimsoll.dev/lease-nodes": "true"}))
    desk.scene.run(10)
    said = desk.types("jobs", "why", "lab/train").output
    assert "It fits now" in said
    assert "cannot be leased to it" in said
    assert "lacks the right to patch nodes" in said
    assert "kubectl apply -k infra/cluster/batch" in said
    desk.scene.wire.call = call
    desk.scene.run(10)
    assert desk.types("jobs", "why", "lab/train").output == "lab/train: running\n"


def test_a_suspended_gang_stops_whole_and_waits_until_it_is_resumed(desk):
    desk.scene.submit(*a_training("train"))
    desk.scene.run()
    assert desk.types("jobs", "suspend", "lab/train").exit_code == 0
    desk.scene.run(10)
    assert not desk.scene.pods_of("train-ps", "train-workers")
    assert "is held" in desk.types("jobs", "why", "lab/train").output
    assert desk.types("jobs", "resume", "lab/train").exit_code == 0
    desk.scene.run(10)
    assert desk.scene.running("train-ps", "train-workers") == 6


def test_bare_pods_are_held_while_they_wait_and_cancelled_but_not_suspended_once_they_run(desk):
    desk.scene.submit(a_bare_pod("one"))
    assert desk.types("jobs", "suspend", "lab/one").exit_code == 0
    desk.scene.run()
    assert "is held" in desk.types("jobs", "why", "lab/one").output
    desk.types("jobs", "resume", "lab/one")
    desk.scene.run()
    assert desk.types("jobs", "why", "lab/one").output == "lab/one: running\n"
    refused = desk.types("jobs", "suspend", "lab/one")
    assert refused.exit_code == 2
    assert "cannot be suspended" in refused.output
    assert desk.types("jobs", "cancel", "lab/one").exit_code == 0
    desk.scene.clock.sleep(10)
    assert desk.types("jobs", "why", "lab/one").exit_code == 1


def test_a_role_that_was_suspended_by_hand_is_resumed_with_its_gang(desk):
    desk.scene.submit(*a_training("train"))
    desk.scene.run()
    desk.scene.patch("train-ps", {"spec": {"suspend": True}})
    desk.scene.run(10)
    assert "suspended by hand" in desk.types("jobs", "why", "lab/train").output
    desk.types("jobs", "resume", "lab/train")
    desk.scene.run(10)
    assert desk.scene.running("train-ps", "train-workers") == 6


def test_a_cancelled_gang_is_gone(desk):
    desk.scene.submit(*a_training("train"))
    desk.scene.run()
    assert desk.types("jobs", "cancel", "lab/train").exit_code == 0
    desk.scene.clock.sleep(10)
    assert not desk.scene.pods_of("train-ps", "train-workers")


@pytest.mark.parametrize("command", ["why", "suspend", "resume", "cancel"])
def test_a_gang_that_is_not_there_is_an_answer_of_no(desk, command):
    result = desk.types("jobs", command, "lab/nobody")
    assert result.exit_code == 1
    assert "no gang lab/nobody" in result.output


def test_a_cluster_without_queues_is_told_how_to_get_some(desk):
    path = "/api/v1/namespaces/plimsoll/configmaps/plimsoll-queues"
    desk.scene.play.call("DELETE", path)
    result = desk.types("jobs")
    assert result.exit_code == 2
    assert "plimsoll queues apply" in result.output
