"""Jobs of several roles on a real API server: host names, environment, and policies that its controllers carry."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.adapters.clock import SystemClock
from plimsoll_batch.adapters.documents import validated
from plimsoll_batch.domain.jobs.lifecycle import Action, Event, Lifecycle, Policy
from plimsoll_cli.batch.submission.job_file import JobFile
from plimsoll_cli.batch.submission.manifests import manifests
from tests.cluster.installed import message_of, until
from tests.cluster.test_queues import JOBS, OWNER, PLANNER, Lab, lab
from tests.support.fake_clusters import Json
from tests.support.queue_scenes import a_job, stop_of
from tests.support.role_scenes import PS, WORKERS, a_policed_training

pytestmark = pytest.mark.cluster
__all__ = ["lab"]

PODS = "/api/v1/namespaces/lab/pods"
NONE: Json = {"spec": {"parallelism": 0, "completions": 0}}
LATE: Json = {"spec": {"activeDeadlineSeconds": 1}}


def pods_of(lab: Lab, *jobs: str) -> list[Json]:
    names = ",".join(jobs)
    query = {"labelSelector": f"batch.kubernetes.io/job-name in ({names})"}
    found: list[Json] = lab.plane.transport().call("GET", PODS, query=query).body["items"]
    return found


def fail(lab: Lab, job: str, code: int) -> None:
    """Let a running pod end with an exit code, as its kubelet would say it."""
    pod = next(each for each in pods_of(lab, job) if each["status"]["phase"] == "Running")
    now = f"{SystemClock().now():%Y-%m-%dT%H:%M:%SZ}"
    ended = {"exitCode": code, "reason": "Error", "finishedAt": now}
    status = {
        "phase": "Failed",
        "containerStatuses": [
            {
                "name": "main",
                "image": "x",
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": {"terminated": ended},
            }
        ],
    }
    path = f"{PODS}/{pod['metadata']['name']}/status"
    assert lab.patch(path, {"status": status}).status == 200


def ended(lab: Lab, job: str) -> str | None:
    conditions = lab.job(job)["status"].get("conditions") or []
    true = {each["type"] for each in conditions if each["status"] == "True"}
    return next((kind for kind in ("Complete", "Failed") if kind in true), None)


def clear(lab: Lab, *jobs: str) -> None:
    for job in jobs:
        lab.plane.transport().call(
            "DELETE", f"{JOBS}/{job}", query={"propagationPolicy": "Background"}
        )
    until(lambda: not pods_of(lab, *jobs))


def trained(lab: Lab, event: Event, action: Action) -> None:
    """Start a gang of which the workers have one policy."""
    lab.configure()
    lab.submit(*a_policed_training([Policy(event=event, action=action)]))
    lab.plan_until(lambda: lab.ready(PS, WORKERS) == 6)


def test_a_pytorch_job_finds_its_master_and_its_ranks(lab: Lab):
    lab.configure()
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    role = {"name": "workers", "pods": 4, "template": {"spec": {"containers": [container]}}}
    document: dict[str, Any] = {"name": "torch", "framework": {"pytorch": {"role": "workers"}}}
    made = manifests(validated(JobFile, {**document, "roles": [role], "restarts": 1}))
    [job], [service] = made.jobs, made.others
    job["metadata"]["labels"] |= {"plimsoll.dev/queue": "lab", "plimsoll.dev/gang": "torch"}
    job["metadata"]["annotations"]["plimsoll.dev/gang-size"] = "4"
    lab.submit(job)
    assert lab.post("/api/v1/namespaces/lab/services", service, OWNER).status == 201
    lab.plan_until(lambda: lab.ready("torch-workers") == 4)
    pods = pods_of(lab, "torch-workers")
    hosts = {f"torch-workers-{rank}" for rank in range(4)}
    assert {pod["spec"]["hostname"] for pod in pods} == hosts
    assert {pod["spec"]["subdomain"] for pod in pods} == {"torch"}
    index = "batch.kubernetes.io/job-completion-index"
    for pod in pods:
        env = {each["name"]: each for each in pod["spec"]["containers"][0]["env"]}
        assert env["MASTER_ADDR"]["value"] == "torch-workers-0.torch"
        assert (
            env["RANK"]["valueFrom"]["fieldRef"]["fieldPath"] == f"metadata.annotations['{index}']"
        )
        rank = pod["metadata"]["annotations"][index]
        assert pod["spec"]["hostname"] == f"torch-workers-{rank}"

    def named() -> set[str]:
        """Hosts that the cluster's DNS is given to answer for."""
        path = "/apis/discovery.k8s.io/v1/namespaces/lab/endpointslices"
        query = {"labelSelector": "kubernetes.io/service-name=torch"}
        slices = lab.plane.transport().call("GET", path, query=query).body["items"]
        return {
            endpoint.get("hostname", "")
            for each in slices
            for endpoint in each.get("endpoints") or ()
        }

    until(lambda: named() == hosts)
    clear(lab, "torch-workers")


def test_a_failed_pod_restarts_the_whole_job(lab: Lab):
    trained(lab, Event.POD_FAILED, Action.RESTART_JOB)
    before = {pod["metadata"]["uid"] for pod in pods_of(lab, PS, WORKERS)}
    fail(lab, WORKERS, 3)
    lab.plan_until(lambda: stop_of(lab.job(PS)).get("restarts") == 1)
    lab.plan_until(lambda: lab.ready(PS, WORKERS) == 6)  # the Job controller waits 10 s by itself
    running = {
        pod["metadata"]["uid"]
        for pod in pods_of(lab, PS, WORKERS)
        if pod["status"]["phase"] == "Running"
    }
    assert len(running) == 6
    assert not running & before
    assert stop_of(lab.job(PS))["restarts"] == 1
    clear(lab, PS, WORKERS)


@pytest.mark.parametrize(
    ("action", "how"), [(Action.COMPLETE_JOB, "Complete"), (Action.TERMINATE_JOB, "Failed")]
)
def test_the_job_controller_ends_what_a_policy_ends(lab: Lab, action: Action, how: str):
    trained(lab, Event.POD_FAILED, action)
    fail(lab, WORKERS, 3)
    lab.plan_until(lambda: ended(lab, PS) is not None and ended(lab, WORKERS) is not None)
    assert (ended(lab, PS), ended(lab, WORKERS)) == (how, how)
    clear(lab, PS, WORKERS)


@pytest.mark.parametrize(
    ("body", "how"),
    [(NONE, "Complete"), ({"spec": {"suspend": False, "parallelism": 0} | LATE["spec"]}, "Failed")],
    ids=["complete", "terminated"],
)
def test_a_job_that_was_never_started_ends_as_well(lab: Lab, body: Json, how: str):
    life = {"plimsoll.dev/lifecycle": Lifecycle().to_record()}
    lab.submit(a_job("waits", annotations=life, completionMode="Indexed"))
    assert lab.patch(f"{JOBS}/waits", body, PLANNER).status == 200
    until(lambda: ended(lab, "waits") == how)
    assert not pods_of(lab, "waits")
    clear(lab, "waits")


@pytest.mark.parametrize(
    ("policed", "body", "words"),
    [
        (False, NONE, "spec.completions"),
        (False, LATE, "spec.activeDeadlineSeconds"),
        (True, {"spec": {"parallelism": 3}}, "spec.parallelism"),
        (True, {"spec": {"activeDeadlineSeconds": 60}}, "spec.activeDeadlineSeconds"),
    ],
    ids=["no policy, completed", "no policy, terminated", "scaled", "given more time"],
)
def test_the_planner_ends_only_jobs_with_policies_and_changes_no_size(lab, policed, body, words):
    notes = {"plimsoll.dev/hold": "true"}
    if policed:
        notes["plimsoll.dev/lifecycle"] = Lifecycle().to_record()
    lab.submit(a_job("kept", annotations=notes, completionMode="Indexed"))
    answer = lab.patch(f"{JOBS}/kept", body, PLANNER)
    assert answer.status == 403
    assert words in message_of(answer)
    clear(lab, "kept")
