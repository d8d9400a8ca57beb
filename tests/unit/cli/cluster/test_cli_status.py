"""`plimsoll status`: what is open, read off nodes and workloads."""

from __future__ import annotations

import json

from plimsoll.domain.kubernetes import INTERRUPTION
from plimsoll.domain.reports import Reason, Report
from plimsoll.services.ports import ClusterApi
from tests.support.builders import NOON
from tests.support.cli_environment import (
    Away,
    MemoryEnvironment,
    a_cluster,
    an_environment,
    interrupt,
    run,
)


def release_a_pod(api: ClusterApi) -> str:
    """Release one pod of web, and return its name with its namespace."""
    seen = api.observe()
    [web] = seen.workloads
    pod = seen.of_workload[web.ref][0]
    api.release(pod, seen.current[web.ref], "i-1@noon")
    return str(pod)


def test_shows_open_interruptions_and_released_pods():
    environment, _ = an_environment()
    interrupt(environment)
    pod = release_a_pod(environment.open(a_cluster()))
    result = run(environment, "status")
    assert result.exit_code == 0
    assert "spot-1" in result.stdout
    assert "spot-interruption" in result.stdout
    assert "2026-01-02T12:01:58Z (in 118 s)" in result.stdout
    assert f"{pod} is released" in result.stdout


def test_with_json_prints_nothing_else():
    environment, _ = an_environment()
    interrupt(environment)
    pod = release_a_pod(environment.open(a_cluster()))
    said = json.loads(run(environment, "status", "--cluster", "harbor", "--output", "json").stdout)
    (harbor,) = said["clusters"]
    (one,) = harbor["interruptions"]
    assert (one["node"], one["phase"], len(one["pods_left"])) == ("spot-1", "open", 1)
    assert harbor["released_pods"] == [pod]


def test_a_quiet_cluster_is_named():
    environment, _ = an_environment()
    assert "harbor: nothing is open" in run(environment, "status").stdout


def test_a_record_that_cannot_be_read_is_shown_as_such():
    environment, counting = an_environment()
    counting.call(
        "PATCH",
        "/api/v1/nodes/spot-1",
        body={"metadata": {"annotations": {INTERRUPTION: "{"}}},
        content_type="application/merge-patch+json",
    )
    assert "unreadable" in run(environment, "status").stdout


def test_shows_zones_that_traffic_leaves_until_it_returns():
    environment, _ = an_environment()
    shift = Report(
        interruption="use1-az2@1",
        cluster="*",
        node="",
        kind="zonal-shift",
        noticed=NOON,
        reasons=(Reason(why="autoshift: traffic leaves the zone use1-az2"),),
    )
    environment.reports.merge(shift)
    assert "zone use1-az2" in run(environment, "status").stdout
    later = NOON.replace(hour=13)
    back = Report(
        interruption="use1-az2@2",
        cluster="*",
        node="",
        kind="zonal-shift",
        noticed=later,
        closed=later,
    )
    environment.reports.merge(back)
    assert "zone use1-az2" not in run(environment, "status").stdout


def test_one_cluster_that_does_not_answer_does_not_hide_the_others():
    environment, _ = an_environment()
    environment.registry.add(a_cluster("quay"))
    environment.transports["quay"] = Away()
    result = run(environment, "status")
    assert result.exit_code == 2
    assert "harbor: nothing is open" in result.stdout
    assert "quay" in result.stderr


def test_says_that_no_cluster_is_registered():
    result = run(MemoryEnvironment(), "status")
    assert result.exit_code == 0
    assert "plimsoll clusters add" in result.stderr
