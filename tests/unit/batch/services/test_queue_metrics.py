"""Metrics of the queues: who waits for what, who was admitted after how long, and who was preempted."""

from __future__ import annotations

import json

import pytest

from plimsoll_batch.domain.admission import QueueState
from plimsoll_batch.domain.queue_metrics import (
    LABELLED_QUEUES,
    QueueMeasure,
    QueueMetric,
    waiting_measures,
)
from plimsoll_batch.observability import CloudWatchQueues
from tests.support.queue_scenes import Scene, a_job
from tests.support.queued import a_configuration, a_gang, a_queue, planned

URGENT = {"plimsoll.dev/priority": "5"}


def test_a_gang_counts_once_as_waiting_as_admitted_and_as_preempted():
    scene = Scene(nodes=2)
    scene.submit(a_job("first", 2))
    scene.run()
    scene.submit(a_job("urgent", 2, annotations=URGENT))
    scene.run(20)
    of_urgent = [each for each in scene.meter.measured if each[0] != "GangsWaiting"]
    waits = [value for metric, *_, value in of_urgent if metric == "AdmissionWait"]
    assert [each for each in of_urgent if each[0] != "AdmissionWait"] == [
        ("GangsAdmitted", "lab", None, 1),
        ("GangsPreempted", "lab", None, 1),
        ("GangsAdmitted", "lab", None, 1),
    ]
    assert 0 <= waits[0] < 1 < waits[1] < 20
    assert [each for each in scene.meter.measured if each[0] == "GangsWaiting"] == [
        ("GangsWaiting", "lab", "starting", 1),
        ("GangsWaiting", "lab", "preempting", 1),
    ]


def test_queues_beyond_the_labelled_ones_and_queues_that_do_not_exist_are_measured_together():
    queues = [a_queue(f"q{number:02}", cohort=None) for number in range(LABELLED_QUEUES + 2)]
    names = [*(queue.name for queue in queues), "nowhere"]
    gangs = [a_gang(f"of-{name}", name) for name in names]
    seen = QueueState(configuration=a_configuration(*queues), gangs=gangs)
    found = waiting_measures(seen, planned(seen.configuration, gangs))
    assert sum(each.value for each in found) == len(gangs)
    assert {each.queue for each in found} == {*names[:LABELLED_QUEUES], "others"}


@pytest.mark.parametrize("reason", [None, "quota or nodes"])
def test_cloudwatch_reads_a_value_with_the_dimensions_of_its_queue(capsys, reason):
    measure = QueueMeasure(metric=QueueMetric.GANGS_WAITING, queue="lab", value=3, reason=reason)
    CloudWatchQueues().measure("harbor", [measure])
    line = json.loads(capsys.readouterr().out)
    [directive] = line["_aws"]["CloudWatchMetrics"]
    named = {"service", "cluster", "queue"} | ({"reason"} if reason else set())
    assert set(directive["Dimensions"][0]) == named
    assert directive["Metrics"] == [{"Name": "GangsWaiting", "Unit": "Count"}]
    assert (line["cluster"], line["queue"], line.get("reason")) == ("harbor", "lab", reason)
    assert line["GangsWaiting"] == [3.0]
