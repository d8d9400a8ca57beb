"""Gangs whose roles have policies, on a fake cluster: pods of them fail, are evicted, and end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plimsoll_batch.domain.jobs.lifecycle import Lifecycle, Policy
from plimsoll_batch.domain.names import LIFECYCLE
from plimsoll_simulation.fake_cluster.conditions import is_true, with_condition
from plimsoll_simulation.fake_cluster.stamps import stamp
from tests.support.fake_clusters import Json
from tests.support.queue_scenes import Scene, a_job

PS, WORKERS = "train-ps", "train-workers"


def a_policed_training(
    policies: Sequence[Policy] = (),
    *,
    ps: Sequence[Policy] = (),
    retries: int = 3,
    after: Mapping[str, str] | None = None,
    run: str | None = None,
    **spec: Any,
) -> list[Json]:
    """Return two parameter servers and four workers; policies are the workers'."""
    lives = {
        "ps": Lifecycle(policies=tuple(ps), retries=retries),
        "workers": Lifecycle(policies=tuple(policies), retries=retries, after=after or {}),
    }
    more = {"completionMode": "Indexed", "backoffLimit": 1000, **spec}
    jobs = [
        a_job(
            f"train-{role}",
            pods,
            gang="train",
            size=6,
            role=role,
            annotations={LIFECYCLE: lives[role].to_record()},
            run=run if role == "workers" else None,
            **more,
        )
        for role, pods in (("ps", 2), ("workers", 4))
    ]
    for job in jobs:
        job["spec"]["template"]["metadata"]["labels"] = {"plimsoll.dev/gang": "train"}
    return jobs


def fail(scene: Scene, job: str, code: int = 1) -> None:
    """Let one running pod of a Job end with an exit code, as its kubelet says it."""
    pod = next(each for each in scene.pods_of(job) if each["status"]["phase"] == "Running")
    now = scene.clock.time
    ended = {"exitCode": code, "reason": "Error", "finishedAt": stamp(now)}
    status = {
        **pod["status"],
        "phase": "Failed",
        "containerStatuses": [{"name": "main", "state": {"terminated": ended}}],
    }
    failed = with_condition({**pod, "status": status}, "Ready", "False", now=now)
    scene.play.cluster.store.replace("pods", failed, now=now)


def evict(scene: Scene, job: str) -> None:
    """Evict one pod of a Job."""
    pod = scene.pods_of(job)[0]["metadata"]["name"]
    path = f"/api/v1/namespaces/lab/pods/{pod}/eviction"
    body = {"metadata": {"name": pod, "namespace": "lab"}}
    assert scene.play.call("POST", path, body, "application/json").status == 201


def ended(scene: Scene, job: str) -> str | None:
    """Return how a Job has ended; None where it has not."""
    found = scene.job(job)
    return next((kind for kind in ("Complete", "Failed") if is_true(found, kind)), None)


def settle(scene: Scene, seconds: float = 30) -> None:
    """Let the planner work for so long, as its schedule wakes it."""
    for _ in range(max(1, round(seconds / 10))):
        scene.run(10)
