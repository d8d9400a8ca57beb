"""`plimsoll queues list`: quota, use, what is borrowed, the share, and who waits for what."""

from __future__ import annotations

import json

import pytest
from prometheus_client.parser import text_string_to_metric_families

from plimsoll_batch.domain.overview import QueueOverview
from plimsoll_cli.batch.list_queues import GAUGES, metrics
from tests.support.cli_environment import MemoryEnvironment, run
from tests.support.queue_scenes import Scene, a_job

QUEUES = """
flavors: [{name: any}]
cohorts: [{name: all, order: dominant-resource-share}]
queues:
  - name: lab
    cohort: all
    resourceGroups: [{flavors: [{name: any, resources: {cpu: {nominal: 1}}}]}]
  - name: closed
    cohort: all
    access: labelled
    resourceGroups: [{flavors: [{name: any, resources: {cpu: {nominal: 1500m}}}]}]
"""


@pytest.fixture
def scene() -> Scene:
    """One gang runs and borrows, one waits for nodes or quota, and one for a grant."""
    found = Scene(nodes=2, queues=QUEUES)
    found.submit(a_job("runs", 2))
    found.run()
    found.submit(a_job("waits"), a_job("denied", queue="closed"))
    found.clock.sleep(60)
    return found


def listed(scene: Scene, output: str) -> str:
    environment = MemoryEnvironment(transports={"harbor": scene.wire})
    environment.clock.time = scene.clock.time
    result = run(environment, "queues", "list", "--output", output)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_each_queue_is_told_with_its_quota_use_share_and_who_waits(scene):
    closed, lab = json.loads(listed(scene, "json"))
    assert lab["quotas"] == [
        {
            "flavor": "any",
            "resource": "cpu",
            "quota": "1",
            "most": "2500m",
            "used": "2",
            "borrowed": "1",
        }
    ]
    assert (lab["running"], lab["waiting"]) == (1, {"quota or nodes": 1})
    assert lab["share"] == 400
    assert lab["longest_wait_seconds"] == pytest.approx(60, abs=2)
    assert (closed["running"], closed["waiting"], closed["share"]) == (0, {"held": 1}, 0)


def test_the_table_has_a_line_for_each_flavor_and_resource(scene):
    shown = [line.split() for line in listed(scene, "table").splitlines()]
    assert shown[1] == ["closed", "any", "cpu", "1500m", "0", "0", "0", "0", "1", "held"]
    assert shown[2][:8] == ["lab", "any", "cpu", "1", "2", "1", "400", "1"]


def test_metrics_are_what_prometheus_reads(scene):
    families = {f.name: f for f in text_string_to_metric_families(listed(scene, "prometheus"))}
    assert families.keys() == GAUGES.keys()
    assert {(f.type, f.documentation) for f in families.values()} == {
        ("gauge", about) for about in GAUGES.values()
    }
    found = {
        (sample.name.removeprefix("plimsoll_queue_"), *sample.labels.values()): sample.value
        for family in families.values()
        for sample in family.samples
    }
    assert found["used", "lab", "any", "cpu"] == 2
    assert found["quota", "closed", "any", "cpu"] == 1.5
    assert found["waiting_gangs", "closed", "held"] == 1
    assert (found["running_gangs", "lab"], found["preempted_gangs", "lab"]) == (1, 0)


def test_no_name_of_a_queue_breaks_the_metrics():
    name = 'a"b\\\nc{}, # HELP'
    overview = QueueOverview(
        name=name,
        cohort=None,
        stopped=False,
        quotas=(),
        share=None,
        running=1,
        waiting={},
        preempted=0,
        longest_seconds=0,
    )
    families = text_string_to_metric_families("\n".join(metrics([overview])) + "\n")
    assert {s.labels["queue"] for family in families for s in family.samples} == {name}
