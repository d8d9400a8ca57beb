"""`plimsoll status`: what is open, read off nodes and workloads."""

from __future__ import annotations

import json
from datetime import timedelta

from rich.table import Table

from plimsoll.domain.kubernetes import INTERRUPTION
from plimsoll.domain.reports import Reason, Report
from plimsoll.services.ports import ClusterApi
from plimsoll_cli.cluster.open_interruptions import OpenInterruption, Status
from plimsoll_cli.cluster.status import screen_lines
from plimsoll_cli.options import SCREEN
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


def test_many_clusters_fit_a_screen_the_open_ones_first():
    environment, _ = an_environment()
    interrupt(environment)
    transport = an_environment()[0].transports["harbor"]
    for number in range(60):
        environment.registry.add(a_cluster(f"quay-{number:02}"))
        environment.transports[f"quay-{number:02}"] = transport
    lines = run(environment, "status").stdout.splitlines()
    assert len(lines) <= SCREEN
    assert "harbor: open interruptions" in lines[0]
    assert "more clusters: nothing is open" in lines[-1]
    every = run(environment, "status", "--verbose").stdout
    assert all(f"quay-{number:02}: nothing is open" in every for number in range(60))


def test_many_nodes_and_released_pods_are_counted_by_workload_the_nearest_deadline_first():
    nodes = tuple(
        OpenInterruption(
            node=f"spot-{n:03}",
            instance=None,
            kind="spot-interruption",
            phase="open",
            noticed=NOON,
            deadline=NOON + timedelta(seconds=n),
            pods_left=("shop/a", "shop/b"),
        )
        for n in range(300)
    )
    many = Status(
        cluster="harbor",
        interruptions=nodes,
        released_pods=tuple(f"shop/web-{n}" for n in range(900)),
        released_of={f"Deployment shop/web-{n:02}": 10 for n in range(90)},
        policy="moves",
    )
    table, *lines = screen_lines([many], (), NOON, 10)
    assert isinstance(table, Table)
    assert table.row_count == 10
    assert lines[0] == (
        "290 more nodes with 580 pods left; the next deadline is 2026-01-02T12:00:10Z (in 10 s)"
    )
    assert str(lines[1]).startswith("harbor: 900 pods are released and serve")
    assert lines[2] == "  10 of Deployment shop/web-00"
    assert lines[-2] == "  800 of 80 more workloads"


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
