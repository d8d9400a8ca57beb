"""The queues of a cluster are listed once in a run of the planner, and then watched, in process and over HTTP."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

import pytest

from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.domain.errors import Conflict
from plimsoll_batch.adapters.kubernetes.cluster import KubernetesQueues
from plimsoll_batch.domain.jobs import Stop
from plimsoll_batch.services.ports import ClusterObjects
from tests.support.queue_scenes import JOBS, a_job

from .conftest import ContractRig, machine
from .rights import CLUSTER, granted_by

PATIENCE = 5.0
"""Seconds that an event over HTTP may take on a busy machine."""


@pytest.fixture
def queues(rig: ContractRig, workers: ThreadWorkers) -> KubernetesQueues:
    """Two nodes, and a Job of two pods that runs."""
    rig.rights.granted = granted_by(CLUSTER / "batch" / "rbac.yaml")
    rig.apply({"kind": "Namespace", "metadata": {"name": "lab"}})
    for name in ("a", "b"):
        rig.join(machine(name))
    rig.apply(a_job("runs", 2, suspend=False))
    rig.wait(60)
    return KubernetesQueues.of(rig.wire, "lab", rig.clock, workers, warn=rig.warnings.append)


@pytest.fixture
def followed(rig: ContractRig, queues: KubernetesQueues) -> Iterator[KubernetesQueues]:
    """The same once it was read; only what comes after that is noted as asked."""
    with queues.following() as cluster:
        cluster.read()
        rig.wire.asked.clear()
        yield cluster


def asked(rig: ContractRig) -> Counter[str]:
    """How many lists and watches were begun."""
    return Counter(
        "watches" if "watch" in query else "lists"
        for method, _, query, _ in rig.wire.asked
        if method == "GET"
    )


def named(objects: ClusterObjects) -> dict[str, list[str]]:
    """What was read, in every detail and whatever order."""
    kinds = {"jobs": objects.jobs, "pods": objects.pods, "nodes": objects.nodes}
    return {kind: sorted(map(repr, found)) for kind, found in kinds.items()}


def test_changes_come_by_watches_and_nothing_is_listed_again(
    rig: ContractRig, queues: KubernetesQueues, followed: KubernetesQueues
) -> None:
    followed.read()
    rig.join(machine("c"))
    rig.apply(a_job("waits", 3), a_job("runs", 1, suspend=False))
    rig.wait(60)
    now, end = named(queues.read()), time.monotonic() + PATIENCE
    rig.wire.asked.clear()
    while (seen := named(followed.read())) != now and time.monotonic() < end:
        time.sleep(0.01)
    assert seen == now
    assert asked(rig)["lists"] == 0


def test_without_the_right_to_watch_it_is_listed_each_time_and_said_once(
    rig: ContractRig, queues: KubernetesQueues
) -> None:
    rig.rights.granted = [g for g in rig.rights.granted if g.verb != "watch"]
    with queues.following() as cluster:
        cluster.read()
        cluster.read()
        rig.apply(a_job("waits", 3))
        assert {job.ref.name for job in cluster.read().jobs} == {"runs", "waits"}
    (warned,) = rig.warnings
    assert "lacks the right to watch" in warned


def test_a_job_that_changed_before_its_event_came_is_not_written_over(
    rig: ContractRig, followed: KubernetesQueues
) -> None:
    rig.wire.silent = True
    (job,) = followed.read().jobs
    rig.apply(a_job("runs", 1, suspend=False))
    with pytest.raises(Conflict):
        followed.suspend(job, Stop(plan="1", at=rig.clock.now(), why="asked"))
    assert rig.get(f"{JOBS}/runs")["spec"]["suspend"] is False
