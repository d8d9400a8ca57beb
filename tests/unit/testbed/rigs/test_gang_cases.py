"""The cases of gangs: what is submitted, in which order, and when."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from plimsoll_batch.adapters.queues_file import configuration_of
from plimsoll_testbed.rigs.gangs.cases import (
    CLIENTS,
    Arrival,
    Case,
    configuration,
    submissions,
)

CASE = Case(name="a", slots=10, jobs=5, arrival=Arrival.AT_ONCE)


@pytest.mark.parametrize("arrival", Arrival)
@pytest.mark.parametrize("queued", [True, False])
def test_every_job_has_its_six_pods_however_it_arrives(arrival, queued):
    pods: Counter[str] = Counter()
    for _, _, job in submissions(replace(CASE, arrival=arrival, queued=queued)):
        pods[job["metadata"]["labels"]["plimsoll.dev/gang"]] += job["spec"]["parallelism"]
    assert pods == dict.fromkeys(CASE.gangs, 6)


def test_jobs_wait_in_a_queue_only_where_there_are_queues():
    for queued in (True, False):
        for _, _, job in submissions(replace(CASE, queued=queued)):
            assert job["spec"]["suspend"] is queued
            assert ("plimsoll.dev/queue" in job["metadata"]["labels"]) is queued


def test_interleaved_jobs_come_from_six_clients_and_spaced_ones_a_second_apart():
    mixed = list(submissions(replace(CASE, arrival=Arrival.INTERLEAVED)))
    assert {client for _, client, _ in mixed} == set(range(CLIENTS))
    spaced = list(submissions(replace(CASE, arrival=Arrival.SPACED)))
    assert sorted({at for at, _, _ in spaced}) == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_the_queues_of_the_cases_are_right():
    assert [queue.name for queue in configuration_of(configuration([CASE])).queues] == ["a"]
