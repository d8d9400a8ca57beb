"""What `plimsoll jobs submit` writes of policies: native fields first, and of a JobSet what it asks for."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.support.queue_scenes import Scene
from tests.support.role_scenes import ended, fail, settle
from tests.unit.cli.batch.test_cli_submit_roles import (
    CONTAINER,
    a_file,
    a_role,
    printed,
    scene,
    submit,
)

__all__ = ["printed", "scene", "submit"]

EVICTED = [{"type": "DisruptionTarget", "status": "True"}]


def a_policy(event: str, action: str, **more: Any) -> dict[str, Any]:
    return {"event": event, "action": action, **more}


def rules(job: Any) -> list[tuple[Any, ...]]:
    found = []
    for rule in job["spec"]["podFailurePolicy"]["rules"]:
        codes = rule.get("onExitCodes")
        found.append(
            (rule["action"], "evicted")
            if codes is None
            else (rule["action"], codes["operator"], *codes["values"])
        )
    return found


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ([], [("Ignore", "evicted")]),
        (
            [a_policy("PodFailed", "TerminateJob", exitCodes=[2, 3])],
            [("Ignore", "evicted"), ("FailJob", "In", 2, 3)],
        ),
        (
            [a_policy("PodFailed", "TerminateJob", exceptExitCodes=[1])],
            [("Ignore", "evicted"), ("FailJob", "NotIn", 0, 1)],
        ),
        (
            [a_policy("PodFailed", "RestartPod"), a_policy("PodEvicted", "TerminateJob")],
            [("FailJob", "evicted"), ("Ignore", "evicted"), ("Count", "NotIn", 0)],
        ),
        (
            [a_policy("PodFailed", "TerminateJob", timeoutSeconds=9)],
            [("Ignore", "evicted"), ("Count", "NotIn", 0)],
        ),
        (
            [a_policy("PodFailed", "TerminateJob", times=2)],
            [("Ignore", "evicted"), ("Count", "NotIn", 0)],
        ),
        (
            [a_policy("Any", "RestartJob")],
            [("Count", "evicted"), ("Ignore", "evicted"), ("Count", "NotIn", 0)],
        ),
        (
            [a_policy("Any", "TerminateJob")],
            [("FailJob", "evicted"), ("Ignore", "evicted"), ("FailJob", "NotIn", 0)],
        ),
        ([a_policy("RoleCompleted", "CompleteJob")], [("Ignore", "evicted")]),
    ],
    ids=[
        "none",
        "listed codes",
        "other codes",
        "pods anew",
        "after a time",
        "after two",
        "restart",
        "terminate",
        "of the role",
    ],
)
def test_what_the_job_controller_can_do_is_written_as_its_rules(printed, policies, expected):
    made = printed(a_file(a_role("a", policies=policies)))
    assert rules(made["Job train-a"]) == expected


def test_the_job_controller_ends_nothing_that_the_planner_is_to_restart(printed):
    policies = [a_policy("PodFailed", "RestartJob")]
    made = printed(a_file(a_role("a", 4), a_role("b"), policies=policies, restarts=2))
    assert made["Job train-a"]["spec"]["backoffLimit"] == 4 * 10 * 3
    native = printed(a_file(a_role("a"), policies=[a_policy("PodFailed", "TerminateJob")]))
    assert "backoffLimit" not in native["Job train-a"]["spec"]


def test_policies_of_a_role_come_before_those_of_the_job(printed):
    own, of_all = a_policy("PodFailed", "RestartRole"), a_policy("Any", "AbortJob")
    made = printed(a_file(a_role("a", policies=[own]), a_role("b"), policies=[of_all], restarts=9))
    life = json.loads(made["Job train-a"]["metadata"]["annotations"]["plimsoll.dev/lifecycle"])
    assert life["policies"] == [own, of_all]
    assert life["retries"] == 9
    other = json.loads(made["Job train-b"]["metadata"]["annotations"]["plimsoll.dev/lifecycle"])
    assert other["policies"] == [of_all]


def test_what_is_submitted_is_carried_out(scene: Scene, submit):
    policies = [a_policy("PodFailed", "RestartJob", exitCodes=[3])]
    result = submit(a_file(a_role("ps", 2), a_role("workers", 4, policies=policies)))
    assert result.exit_code == 0, result.output
    scene.run()
    before = {pod["metadata"]["uid"] for pod in scene.pods_of("train-ps")}
    fail(scene, "train-workers", 3)
    settle(scene)
    after = {pod["metadata"]["uid"] for pod in scene.pods_of("train-ps")}
    assert not before & after
    assert scene.running("train-ps", "train-workers") == 6


def test_a_role_that_has_failed_ends_the_others_unless_the_file_says_otherwise(scene, submit):
    submit(a_file(a_role("ps", 2), a_role("workers", 4, retries=None)))
    scene.run()
    scene.patch("train-workers", {"spec": {"backoffLimit": 0}})
    fail(scene, "train-workers")
    settle(scene)
    assert (ended(scene, "train-ps"), ended(scene, "train-workers")) == ("Failed", "Failed")


# --- JobSets ---------------------------------------------------------------------------------------


def a_replicated(name: str, pods: int = 1, replicas: int = 1, **more: Any) -> dict[str, Any]:
    spec = {
        "parallelism": pods,
        "completions": pods,
        "template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}},
        **more.pop("spec", {}),
    }
    return {"name": name, "replicas": replicas, "template": {"spec": spec}, **more}


def a_jobset(*jobs: Any, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "name": "train",
            "namespace": "lab",
            "labels": {"plimsoll.dev/queue": "lab"},
            "annotations": {"plimsoll.dev/priority": "4"},
        },
        "spec": {"replicatedJobs": [*jobs], **spec},
    }


def life_of(made: Any, job: str) -> Any:
    return json.loads(made[f"Job {job}"]["metadata"]["annotations"]["plimsoll.dev/lifecycle"])


def test_a_jobset_becomes_its_jobs_under_the_names_that_jobset_gives_them(printed):
    made = printed(a_jobset(a_replicated("driver"), a_replicated("workers", 2, replicas=3)))
    assert {key for key in made if key.startswith("Job")} == {
        "Job train-driver-0",
        *(f"Job train-workers-{index}" for index in range(3)),
    }
    job = made["Job train-workers-1"]
    assert job["spec"]["template"]["spec"]["subdomain"] == "train"
    assert job["metadata"]["annotations"]["plimsoll.dev/gang-size"] == "7"
    assert job["metadata"]["annotations"]["plimsoll.dev/priority"] == "4"


def test_what_a_jobset_does_about_failures_and_success_becomes_policies(printed):
    made = printed(
        a_jobset(
            a_replicated("driver", spec={"backoffLimit": 0}),
            a_replicated("workers", spec={"backoffLimit": 2}),
            failurePolicy={"maxRestarts": 5},
            successPolicy={"operator": "All", "targetReplicatedJobs": ["driver"]},
        )
    )
    assert life_of(made, "train-driver-0")["retries"] == 5
    assert life_of(made, "train-driver-0")["policies"] == [
        a_policy("Any", "RestartJob"),
        a_policy("RoleCompleted", "CompleteJob"),
    ]
    assert life_of(made, "train-workers-0")["policies"] == [a_policy("Any", "RestartJob", times=3)]
    alone = printed(a_jobset(a_replicated("a", spec={"backoffLimit": 0})))
    assert life_of(alone, "train-a-0")["policies"] == [a_policy("Any", "TerminateJob")]


@pytest.mark.parametrize(
    ("second", "spec", "after"),
    [
        ({}, {"startupPolicy": {"startupPolicyOrder": "InOrder"}}, "Ready"),
        ({"dependsOn": [{"name": "a", "status": "Ready"}]}, {}, "Ready"),
        ({"dependsOn": [{"name": "a", "status": "Complete"}]}, {}, "Completed"),
    ],
    ids=["in order", "ready", "complete"],
)
def test_the_order_of_a_jobset_is_kept(printed, second, spec, after):
    made = printed(a_jobset(a_replicated("a", replicas=2), a_replicated("b", **second), **spec))
    assert life_of(made, "train-b-0")["after"] == {"a-0": after, "a-1": after}
    assert life_of(made, "train-a-0")["after"] == {}


@pytest.mark.parametrize(
    ("jobs", "spec", "words"),
    [
        ([a_replicated("a", spec={"podFailurePolicy": {}})], {}, "podFailurePolicy"),
        ([a_replicated("a", spec={"completions": 3})], {}, "as many as parallelism"),
        ([a_replicated("a")], {"coordinator": {}}, "coordinator"),
        ([a_replicated("a")], {"failurePolicy": {"rules": []}}, "failurePolicy.rules"),
        ([a_replicated("a")], {"network": {"subdomain": "x"}}, "network.subdomain"),
        (
            [a_replicated("a", dependsOn=[{"name": "z", "status": "Ready"}])],
            {},
            "no replicatedJob z",
        ),
        (
            [a_replicated("a", spec={"backoffLimitPerIndex": 1})],
            {"failurePolicy": {"maxRestarts": 1}},
            "is not created anew",
        ),
        (
            [a_replicated("a", replicas=2), a_replicated("b")],
            {"successPolicy": {"operator": "All", "targetReplicatedJobs": ["a"]}},
            "has no counterpart",
        ),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_what_has_no_counterpart_is_refused_by_name(submit, jobs, spec, words):
    result = submit(a_jobset(*jobs, **spec))
    assert result.exit_code == 2
    assert words in result.output


def test_a_jobset_runs_as_a_gang(scene, submit):
    document = yaml.safe_load(yaml.safe_dump(a_jobset(a_replicated("a", 2), a_replicated("b", 4))))
    assert submit(document).exit_code == 0
    scene.run()
    assert scene.running("train-a-0", "train-b-0") == 6
