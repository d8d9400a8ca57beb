"""Zonal shifts, from events in the queue to pods that have left the zone, over a fake cluster."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from plimsoll.domain.drain import added_by_group
from plimsoll.domain.errors import MissingRights, Temporary
from plimsoll.domain.interruptions import Policy, Response
from plimsoll.domain.registry import Mode
from plimsoll.domain.zones import LONGEST_SHIFT, has_shift_taint
from plimsoll.services.retry_policy import SLOW_WAKE_UPS
from tests.support.builders import NOON, ZONE_A, ZONE_B, a_group, deployment_json
from tests.support.workload_sets import WiredServices, handled

EKS = "arn:aws:eks:us-east-1:111122223333:cluster/"
BALANCER = "arn:aws:elasticloadbalancing:us-east-1:111122223333:loadbalancer/app/web/1"


@pytest.fixture
def rig() -> WiredServices:
    rig = WiredServices()
    rig.join("a", zone=ZONE_A)
    rig.apply(deployment_json(replicas=2))
    rig.join("b", zone=ZONE_B)
    return rig


def shift(title: str = "Autoshift In Progress", *, seconds: float = 0, **how) -> str:
    at = NOON + timedelta(seconds=seconds + 60)
    event = {
        "version": "0",
        "id": f"shift-{title}-{seconds}",
        "detail-type": title,
        "source": "aws.arc-zonal-shift",
        "account": "111122223333",
        "time": f"{at:%Y-%m-%dT%H:%M:%SZ}",
        "region": "us-east-1",
        "resources": [],
        "detail": {"version": "0.0.1", "data": "", "metadata": {"awayFrom": "use1-az1"}},
    }
    return json.dumps(event | how)


def reconciled(rig: WiredServices, seconds: float = 60) -> None:
    rig.wake_ups.sent.clear()
    rig.drains.reconcile("harbor", "me", seconds=seconds)


def tainted(rig: WiredServices) -> list[str]:
    return [node.name for node in rig.api.nodes() if has_shift_taint(node)]


def test_pods_leave_the_zone_and_are_never_fewer(rig):
    handled(rig, shift())
    assert rig.wake_ups.sent == [("harbor", delay) for delay in SLOW_WAKE_UPS]
    reconciled(rig)
    assert (tainted(rig), rig.pods_on("a"), rig.ready("web")) == (["a"], [], 2)
    assert not rig.node("a").unschedulable
    assert rig.node("a").interruption is None


def test_a_node_that_is_added_for_a_shift_stands_in_a_report_by_which_it_is_taken_back():
    rig = WiredServices()
    rig.join("a", zone=ZONE_A)
    rig.apply(deployment_json(replicas=2))
    rig.aws.groups = [a_group("od", zones=[ZONE_B])]
    handled(rig, shift())
    reconciled(rig)
    (report,) = rig.reports.list("harbor")
    assert (report.kind, report.node, list(report.added.values())) == ("scale-up", "", [1])
    assert list(added_by_group(report).values()) == [1]


def test_the_taint_goes_when_traffic_comes_back(rig):
    handled(rig, shift())
    reconciled(rig)
    handled(rig, shift("Autoshift Completed", seconds=300))
    reconciled(rig)
    assert tainted(rig) == []


@pytest.mark.parametrize("times", [1, 2])
def test_the_end_counts_also_when_it_comes_before_the_beginning(rig, times):
    for body in [shift("Autoshift Completed", seconds=300), shift()] * times:
        handled(rig, body)
    reconciled(rig)
    assert tainted(rig) == []


def test_a_shift_without_an_end_ends_by_itself_and_the_resync_finds_that(rig):
    handled(rig, shift())
    reconciled(rig)
    rig.wake_ups.sent.clear()
    rig.pass_to(NOON + LONGEST_SHIFT["autoshift"] + timedelta(minutes=2))
    rig.resync.run()
    assert rig.wake_ups.sent
    reconciled(rig)
    assert tainted(rig) == []


def test_a_node_that_joins_the_zone_later_is_found_by_the_resync(rig):
    handled(rig, shift())
    reconciled(rig)
    rig.join("a2", zone=ZONE_A)
    rig.resync.run()
    assert rig.wake_ups.sent
    reconciled(rig)
    assert tainted(rig) == ["a", "a2"]


@pytest.mark.parametrize(
    ("title", "resources", "concerned"),
    [
        ("Manual Shift Started", [f"{EKS}harbor"], True),
        ("Manual Shift Updated", [f"{EKS}harbor"], True),
        ("Practice Run Started", [f"{EKS}harbor"], True),
        ("Manual Shift Started", [f"{EKS}quay"], False),
        ("Manual Shift Started", [BALANCER], False),
        ("Autoshift In Progress", [BALANCER], True),
    ],
)
def test_what_owners_shift_concerns_the_clusters_that_are_named(rig, title, resources, concerned):
    handled(rig, shift(title, resources=resources))
    reconciled(rig)
    assert bool(tainted(rig)) is concerned


@pytest.mark.parametrize("how", [{"account": "999988887777"}, {"region": "eu-west-1"}])
def test_a_shift_of_another_account_or_region_concerns_no_cluster(rig, how):
    sources = replace(rig.notices.sources, account="111122223333")
    shifts = replace(rig.services.zonal_shifts, sources=sources)
    service = replace(rig.notices, sources=sources, zonal_shifts=shifts)
    assert service.receive([shift(**how)]) == [None]
    reconciled(rig)
    assert tainted(rig) == []


def test_a_zone_that_ec2_does_not_know_concerns_no_cluster(rig):
    handled(rig, shift(detail={"metadata": {"awayFrom": "use1-az9"}}))
    assert rig.wake_ups.sent == []


@pytest.mark.parametrize("error", [Temporary("no answer"), MissingRights("AccessDenied")])
def test_where_ec2_does_not_tell_the_zones_the_notice_comes_back(rig, error):
    rig.aws.fails = error
    assert rig.notices.receive([shift()]) == [error]
    rig.aws.fails = None
    handled(rig, shift())
    reconciled(rig)
    assert tainted(rig) == ["a"]


def test_in_a_cluster_that_is_only_observed_nothing_is_written(rig):
    rig.registry.update(replace(rig.cluster, mode=Mode.OBSERVE))
    handled(rig, shift())
    assert rig.wake_ups.sent == []
    assert tainted(rig) == []


def test_an_owner_who_wants_none_of_it_is_not_bothered(rig):
    policy = Policy(on=(("zonal-shift", Response.IGNORE),))
    rig.registry.update(replace(rig.cluster, policy=policy))
    handled(rig, shift())
    reconciled(rig)
    assert (tainted(rig), len(rig.pods_on("a"))) == ([], 2)
