"""`plimsoll queues list`: quota, use, what is borrowed, the share, and who waits for what."""

from __future__ import annotations

import json

import pytest

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
    lines = listed(scene, "prometheus").splitlines()
    assert "# TYPE plimsoll_queue_used gauge" in lines
    assert 'plimsoll_queue_used{queue="lab",flavor="any",resource="cpu"} 2' in lines
    assert 'plimsoll_queue_quota{queue="closed",flavor="any",resource="cpu"} 1.5' in lines
    assert 'plimsoll_queue_waiting_gangs{queue="closed",reason="held"} 1' in lines
    assert 'plimsoll_queue_running_gangs{queue="lab"} 1' in lines
