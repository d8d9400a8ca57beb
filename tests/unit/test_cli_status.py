"""`plimsoll status`: what is open, read off nodes and workloads."""

from __future__ import annotations

import json

from plimsoll.domain.names import INTERRUPTION
from plimsoll.domain.reports import Report
from plimsoll.domain.temporary import TemporaryReplicas
from plimsoll.services.ports import ClusterApi
from tests.support.builders import NOON
from tests.support.cli_world import Away, MemoryWorld, a_cluster, a_world, interrupt, run


def raised(api: ClusterApi) -> None:
    """Raise the replicas of web for a while."""
    web = next(w for w in api.observe().workloads if w.ref.name == "web")
    api.scale(web, 3, TemporaryReplicas(restore=2, set_to=3).to_record())


def test_shows_open_interruptions_and_temporary_changes():
    world, _ = a_world()
    interrupt(world)
    raised(world.open(a_cluster()))
    result = run(world, "status")
    assert result.exit_code == 0
    assert "spot-1" in result.stdout
    assert "spot-interruption" in result.stdout
    assert "2026-01-02T12:01:58Z (in 118 s)" in result.stdout
    assert "Deployment default/web" in result.stdout


def test_with_json_prints_nothing_else():
    world, _ = a_world()
    interrupt(world)
    raised(world.open(a_cluster()))
    said = json.loads(run(world, "status", "--cluster", "harbor", "--json").stdout)
    (harbor,) = said["clusters"]
    (one,) = harbor["interruptions"]
    assert (one["node"], one["phase"], len(one["pods_left"])) == ("spot-1", "open", 1)
    assert harbor["temporary_changes"] == [
        {
            "workload": "Deployment default/web",
            "replicas": 3,
            "declared": 2,
            "unreadable": None,
        }
    ]


def test_a_quiet_cluster_is_named():
    world, _ = a_world()
    assert "harbor: nothing is open" in run(world, "status").stdout


def test_needs_no_stack_with_a_kubeconfig():
    world, _ = a_world(registered=False)
    interrupt(world)
    assert "spot-1" in run(world, "status", "--context", "harbor").stdout


def test_a_record_that_cannot_be_read_is_shown_as_such():
    world, counting = a_world()
    counting.call(
        "PATCH",
        "/api/v1/nodes/spot-1",
        body={"metadata": {"annotations": {INTERRUPTION: "{"}}},
        content_type="application/merge-patch+json",
    )
    assert "left alone" in run(world, "status").stdout


def test_shows_zones_that_traffic_leaves_until_it_returns():
    world, _ = a_world()
    shift = Report(
        interruption="use1-az2@1",
        cluster="*",
        node="",
        kind="zonal-shift",
        noticed=NOON,
        reasons=("autoshift: traffic leaves the zone use1-az2",),
    )
    world.reports.merge(shift)
    assert "zone use1-az2" in run(world, "status").stdout
    later = NOON.replace(hour=13)
    back = Report(
        interruption="use1-az2@2",
        cluster="*",
        node="",
        kind="zonal-shift",
        noticed=later,
        closed=later,
    )
    world.reports.merge(back)
    assert "zone use1-az2" not in run(world, "status").stdout


def test_one_cluster_that_does_not_answer_does_not_hide_the_others():
    world, _ = a_world()
    world.registry.add(a_cluster("quay"))
    world.transports["quay"] = Away()
    result = run(world, "status")
    assert result.exit_code == 2
    assert "harbor: nothing is open" in result.stdout
    assert "quay" in result.stderr


def test_says_that_no_cluster_is_registered():
    result = run(MemoryWorld(), "status")
    assert result.exit_code == 0
    assert "plimsoll clusters add" in result.stderr
