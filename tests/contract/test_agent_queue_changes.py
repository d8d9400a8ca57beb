"""The agent tells of Jobs of queues that changed: soon, seldom, and of nothing that the planner did itself."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.domain.errors import Throttled
from plimsoll_agent.queue_changes import APART, QueueChanges
from plimsoll_agent.taint_forwarder import LOOK_SECONDS
from tests.support.fake_clusters import MERGE, Json
from tests.support.queue_scenes import a_job

from .test_agent_following import Site

JOBS = "/apis/batch/v1/namespaces/lab/jobs"


class Harbor(Site):
    def __post_init__(self) -> None:
        super().__post_init__()
        self.said = 0
        self.queues = QueueChanges(self.requests, self.clock, self.say, self.warnings.append)
        self.cluster.apply(
            [{"kind": "Namespace", "metadata": {"name": "lab"}}], now=self.clock.now()
        )

    def say(self) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.said += 1

    def pass_time(self, seconds: float = APART.total_seconds()) -> int:
        """Let the agent look for so long; return how often it said something."""
        before = self.said
        end = self.clock.now().timestamp() + seconds
        while self.clock.now().timestamp() < end:
            self.wait(self.queues.round())
        self.queues.round()
        return self.said - before

    def submit(self, *jobs: Json) -> None:
        self.cluster.apply(jobs, now=self.clock.now())

    def change(self, name: str, body: Json) -> None:
        path = f"{JOBS}/{name}"
        answer = self.cluster.handle("PATCH", path, {}, body, MERGE, now=self.clock.now())
        assert answer.status == 200, answer.body


@pytest.fixture
def harbor() -> Harbor:
    site = Harbor()
    site.pass_time()
    return site


def test_a_job_that_is_created_is_told_of_at_the_next_look(harbor):
    harbor.submit(a_job("train"))
    assert harbor.queues.round() == LOOK_SECONDS
    assert harbor.said == 1
    assert harbor.pass_time(60) == 0


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": {"annotations": {"plimsoll.dev/hold": "true"}}},
        {"metadata": {"labels": {"plimsoll.dev/queue": "other"}}},
        {"spec": {"parallelism": 3}},
    ],
    ids=["held", "another queue", "more pods"],
)
def test_what_its_owner_changes_is_told_of(harbor, body):
    harbor.submit(a_job("train"))
    harbor.pass_time()
    harbor.change("train", body)
    assert harbor.pass_time() == 1


def test_a_job_that_ends_or_is_deleted_is_told_of(harbor):
    harbor.submit(a_job("short", run="1s"), a_job("gone"))
    harbor.pass_time()
    harbor.change("short", {"spec": {"suspend": False}})
    assert harbor.pass_time(60) == 1
    harbor.cluster.handle("DELETE", f"{JOBS}/gone", {}, None, now=harbor.clock.now())
    assert harbor.pass_time() == 1


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": {"annotations": {"plimsoll.dev/admission": "{}"}}},
        {"metadata": {"annotations": {"plimsoll.dev/stop": "{}"}}, "spec": {"suspend": True}},
    ],
    ids=["planned", "suspended"],
)
def test_what_the_planner_writes_is_not_told_to_it(harbor, body):
    harbor.submit(a_job("train"))
    harbor.pass_time()
    harbor.change("train", body)
    assert harbor.pass_time() == 0


def test_a_job_that_names_no_queue_is_nobodys_business(harbor):
    job: Any = a_job("free")
    del job["metadata"]["labels"]
    harbor.submit(job)
    assert harbor.pass_time() == 0


def test_a_tenant_that_changes_its_jobs_all_the_time_is_told_of_once_in_a_few_seconds(harbor):
    for number in range(60):
        harbor.submit(a_job(f"j{number}"))
        harbor.wait(harbor.queues.round())
    assert harbor.said <= 60 / APART.total_seconds() + 1
    assert harbor.pass_time() == 1


def test_what_the_service_did_not_take_is_said_again(harbor):
    harbor.submit(a_job("train"))
    harbor.refuses = Throttled("later", retry_after=20)
    with pytest.raises(Throttled):
        harbor.queues.round()
    harbor.refuses = None
    harbor.queues.round()
    assert harbor.said == 1
