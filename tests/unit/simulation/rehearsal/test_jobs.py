"""Which Jobs a rehearsal names, because their policies let them fail when their pods are ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll_simulation.rehearsal.jobs import failing_jobs
from plimsoll_simulation.rehearsal.live import LiveCluster, read_cluster
from plimsoll_simulation.rehearsal.obstacles import Obstacle
from plimsoll_simulation.rehearsal.scope import Scope
from tests.support.builders import pod_spec_json
from tests.support.cli_environment import MemoryEnvironment, run
from tests.support.rehearsed import OBJECTS, a_mixed_cluster, an_object

type Json = dict[str, Any]

TARGET = [{"type": "DisruptionTarget"}]
IGNORING = {"rules": [{"action": "Ignore", "onPodConditions": TARGET}]}
COUNTING = {"rules": [{"action": "Count", "onPodConditions": TARGET}]}
EXITS = {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [3]}}
FIRST = (
    "as the first rule of its podFailurePolicy: "
    "{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}"
)
CURE = "podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]}"


def a_job(*, restarts: str = "Never", **spec: Any) -> Json:
    """Return a Job of two pods, which do not end by themselves."""
    pod = pod_spec_json(cpu="100m", restartPolicy=restarts)
    template = {"metadata": {"labels": {"app": "sum"}}, "spec": pod}
    job = an_object("Job", "sum", {"parallelism": 2, "template": template, **spec})
    return {**job, "apiVersion": "batch/v1"}


def with_a_job(job: Json) -> MemoryEnvironment:
    return a_mixed_cluster(objects=[*OBJECTS, job])


def read(environment: MemoryEnvironment) -> LiveCluster:
    transport = environment.transports["harbor"]
    return read_cluster(Requests(transport=transport, cluster="harbor"), environment.clock)


def named(job: Json) -> list[Obstacle]:
    """Return what is said where all spot nodes go, on which both of its pods stand."""
    live = read(with_a_job(job))
    return [*failing_jobs(live, Scope().nodes(live.seen))]


def test_a_job_with_the_line_that_is_advised_is_named_no_more():
    (obstacle,) = named(a_job(backoffLimit=0))
    cure = yaml.safe_load(obstacle.change)
    assert named(a_job(backoffLimit=0, **cure)) == []


@pytest.mark.parametrize(
    "spec",
    [
        {"backoffLimit": 2},
        {},
        {"backoffLimit": 0, "podFailurePolicy": IGNORING},
        {"backoffLimitPerIndex": 1},
        {"backoffLimit": 0, "managedBy": "kueue.x-k8s.io/multikueue"},
    ],
)
def test_a_job_that_outlives_the_end_of_its_pods_is_not_named(spec: Json):
    assert named(a_job(**spec)) == []


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"backoffLimit": 0}, "it fails after more than 0 (backoffLimit; 0 so far)"),
        ({"backoffLimit": 1}, "2 of its pods would be ended, each is a failure"),
        ({"backoffLimit": 0, "podFailurePolicy": COUNTING}, "backoffLimit"),
        ({"podFailurePolicy": {"rules": [EXITS, *IGNORING["rules"]]}}, "its podFailurePolicy then"),
        ({"backoffLimitPerIndex": 0}, "an index fails with its first failure"),
    ],
)
def test_a_job_that_would_fail_is_named_with_the_policy_that_prevents_it(spec: Json, why: str):
    (obstacle,) = named(a_job(**spec))

    assert (obstacle.workload, obstacle.kind) == ("Job shop/sum", "job fails")
    assert why in obstacle.why
    assert obstacle.change == (FIRST if "podFailurePolicy" in spec else CURE)


def test_failures_that_have_been_count():
    environment = with_a_job(a_job(backoffLimit=2))
    live = read(environment)
    (job,) = live.objects["jobs"]
    live = LiveCluster(
        name=live.name,
        at=live.at,
        seen=live.seen,
        objects={"jobs": [{**job, "status": {"failed": 1}}]},
    )
    (obstacle,) = failing_jobs(live, Scope().nodes(live.seen))

    assert "it fails after more than 2 (backoffLimit; 1 so far)" in obstacle.why


def test_the_cure_says_that_a_policy_needs_pods_that_are_not_restarted():
    (obstacle,) = named(a_job(backoffLimit=0, restarts="OnFailure"))

    assert obstacle.change == f"{CURE}, with restartPolicy: Never"


def test_a_job_is_played_with_its_policy_and_the_failures_that_it_has_left(tmp_path: Path):
    job = a_job(backoffLimit=4, podFailurePolicy=IGNORING)
    result = run(
        with_a_job(job),
        "rehearse",
        "--cluster",
        "harbor",
        "--keep",
        str(tmp_path),
        "--output",
        "json",
    )
    assert "job fails" not in result.stdout
    kept = [
        found["spec"]
        for file in tmp_path.glob("objects-*.yaml")
        for found in yaml.safe_load_all(file.read_text())
        if found["kind"] == "Job"
    ]
    assert [(s["backoffLimit"], s["podFailurePolicy"]) for s in kept] == [(4, IGNORING)]


def test_the_command_names_it(tmp_path: Path):
    result = run(
        with_a_job(a_job(backoffLimit=0)), "rehearse", "--cluster", "harbor", "--output", "json"
    )
    assert "job fails" in result.stdout
    assert CURE in result.stdout
