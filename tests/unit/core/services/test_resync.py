"""The resync: what no event told, and which clusters it wakes, over a fake cluster."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from plimsoll.domain.errors import Refused, Temporary
from plimsoll.domain.interruptions import LifecycleHook
from plimsoll.domain.reports import Metric
from plimsoll.services.retry_policy import SLOW_WAKE_UPS
from tests.support.builders import a_group
from tests.support.workload_sets import (
    WiredServices,
    a_spot_notice,
    advised,
    deployment,
    handled,
    interrupt,
)


@pytest.fixture
def rig():
    return WiredServices()


def test_the_resync_finds_what_no_event_told(rig):
    instance = rig.join("spot", capacity="spot")
    rig.aws.silent = [a_spot_notice(rig, instance)]

    assert rig.resync.run() == 0  # it was not open when the resync looked
    assert rig.node("spot").unschedulable
    assert rig.resync.run() == 1


def test_the_resync_wakes_clusters_with_something_open_and_only_those(rig):
    instance = rig.join("spot", capacity="spot")
    rig.apply(deployment(replicas=1))
    rig.resync.run()
    assert rig.wake_ups.sent == []

    handled(rig, rig.spot_event(instance))
    for _ in range(2):
        rig.wake_ups.sent.clear()
        rig.resync.run()
        assert [d for _, d in rig.wake_ups.sent] == list(SLOW_WAKE_UPS)
        rig.drains.reconcile("harbor", "me", seconds=0)  # what is left can only be waited for


def test_a_cluster_in_which_nothing_can_be_done_is_not_woken(rig):
    instance = rig.join("spot", capacity="spot")
    rig.apply(deployment(replicas=1))
    advised(rig, instance)
    rig.drains.reconcile("harbor", "me")
    rig.wake_ups.sent.clear()
    rig.sleep(60)
    version = rig.version()

    rig.resync.run()

    assert len(rig.pods_on("spot")) == 1
    assert rig.wake_ups.sent == []
    assert rig.version() == version


def test_a_cluster_is_woken_when_a_node_group_may_be_asked_for_what_waits(rig):
    instance = rig.join("spot", capacity="spot")
    rig.apply(deployment(replicas=1))
    advised(rig, instance)
    rig.drains.reconcile("harbor", "me")
    rig.wake_ups.sent.clear()
    rig.aws.groups = [a_group("base", desired=0)]

    rig.resync.run()

    assert [d for _, d in rig.wake_ups.sent] == list(SLOW_WAKE_UPS)


@pytest.mark.parametrize(
    ("renewed", "readable", "woken"),
    [(False, True, True), (True, True, False), (True, False, True)],
    ids=["uncordons", "the group replaces the node", "groups not read"],
)
def test_a_cluster_is_woken_to_uncordon_on_advice_only_if_its_reconcile_does(
    rig, monkeypatch, renewed, readable, woken
):
    instance = rig.join("spot", capacity="spot")
    own = a_group(desired=1, max_size=1, instances=[instance])
    rig.aws.groups = [replace(own, renew=renewed)]
    rig.apply(deployment("here", replicas=1))
    advised(rig, instance)
    rig.drains.reconcile("harbor", "its turn")
    rig.sleep(600)
    rig.apply(deployment("waits", replicas=1))
    rig.wake_ups.sent.clear()
    if not readable:
        refused = Refused("autoscaling:DescribeAutoScalingGroups")
        monkeypatch.setattr(rig.aws, "list", lambda _: (_ for _ in ()).throw(refused))

    rig.resync.run()
    assert [d for _, d in rig.wake_ups.sent] == list(SLOW_WAKE_UPS) * woken

    rig.drains.reconcile("harbor", "me")
    assert rig.node("spot").unschedulable is not woken


@pytest.mark.parametrize("renewed", [False, True])
def test_a_cluster_is_woken_for_a_pod_that_waits_for_a_node_emptied_on_advice(rig, renewed):
    instance = rig.join("spot", capacity="spot")
    own = a_group(desired=1, max_size=1, instances=[instance])
    rig.aws.groups = [replace(own, renew=renewed)]
    advised(rig, instance)
    rig.drains.reconcile("harbor", "its turn")
    rig.sleep(600)
    rig.apply(deployment("waits", replicas=1))
    rig.wake_ups.sent.clear()

    rig.resync.run()
    assert bool(rig.wake_ups.sent) is not renewed

    rig.drains.reconcile("harbor", "me")
    assert rig.node("spot").unschedulable is renewed


@pytest.mark.parametrize("away", ["index", "reports", "aws"])
def test_the_resync_wakes_clusters_without_dynamodb_and_without_ec2(rig, monkeypatch, away):
    interrupt(rig, deployment(replicas=1))
    rig.wake_ups.sent.clear()

    def fail(*_):
        raise Temporary("away")

    store, call = {
        "index": (rig.index, "find"),
        "reports": (rig.reports, "list"),
        "aws": (rig.aws, "interrupted"),
    }[away]
    monkeypatch.setattr(store, call, fail)

    rig.resync.run()
    assert rig.telemetry.metrics[Metric.CLUSTERS_NOT_RESYNCED] == 1
    assert [d for _, d in rig.wake_ups.sent] == list(SLOW_WAKE_UPS)


def test_the_resync_finds_what_no_event_told_without_its_index(rig, monkeypatch):
    instance = rig.join("spot", capacity="spot")
    rig.aws.silent = [a_spot_notice(rig, instance)]

    def fail(_):
        raise Temporary("away")

    monkeypatch.setattr(rig.index, "find", fail)
    rig.resync.run()
    assert rig.telemetry.metrics[Metric.CLUSTERS_NOT_RESYNCED] == 1
    assert rig.node("spot").unschedulable


def test_the_resync_closes_the_report_of_a_node_that_is_no_more(rig):
    instance = rig.join("spot", capacity="spot")
    handled(rig, rig.spot_event(instance))
    rig.drains.reconcile("harbor", "me")
    rig.fake_cluster.vanish("spot", now=rig.time)
    rig.sleep(600)

    rig.resync.run()

    (report,) = rig.reports.list("harbor")
    assert report.closed == rig.time


def hooked_and_deleted(rig, *, ours: bool = True) -> str:
    """Let the Node of an instance that waits for a hook be deleted after its cordon; return the instance."""
    instance: str = rig.join("spot", capacity="spot")
    hook = LifecycleHook(
        group="spot",
        name="h",
        timeout=timedelta(hours=1),
        longest=timedelta(hours=48),
        ours=ours,
    )
    group = a_group("spot", instances=[instance])
    rig.aws.groups = [replace(group, waiting=frozenset({instance}), hooks=(hook,))]
    rig.resync.run()
    rig.apply(deployment(replicas=1))
    handled(rig, rig.spot_event(instance))
    rig.drains.reconcile("harbor", "me")
    rig.fake_cluster.vanish("spot", now=rig.time)
    rig.sleep(600)
    rig.aws.completed.clear()
    return instance


@pytest.mark.parametrize("ours", [True, False])
def test_our_hook_of_an_instance_whose_node_was_deleted_after_its_cordon_is_completed_once(
    rig, ours
):
    instance = hooked_and_deleted(rig, ours=ours)

    rig.resync.run()
    rig.resync.run()
    assert rig.aws.completed == [instance] * ours


def test_the_hook_of_a_deleted_node_is_completed_later_where_aws_does_not_answer(rig, monkeypatch):
    instance = hooked_and_deleted(rig)

    def fail(*_):
        raise Temporary("away")

    with monkeypatch.context() as patch:
        patch.setattr(rig.aws, "complete_lifecycle", fail)
        rig.resync.run()
    assert [report.closed for report in rig.reports.list("harbor")] == [None]
    rig.sleep(600)
    rig.resync.run()
    assert rig.aws.completed == [instance]


def test_the_resync_does_not_say_again_what_an_event_told(rig):
    instance = rig.join("spot", capacity="spot")
    handled(rig, rig.spot_event(instance))
    rig.sleep(1)
    version = rig.node("spot").resource_version
    rig.aws.silent = [a_spot_notice(rig, instance)]

    rig.resync.run()

    assert rig.node("spot").resource_version == version


def test_the_resync_of_a_storm_does_not_say_again_what_events_told_meanwhile(rig, monkeypatch):
    instance = rig.join("spot", capacity="spot")
    rig.aws.silent = [a_spot_notice(rig, instance)]
    observe = rig.api.observe

    def then_handled():
        seen = observe()
        handled(rig, rig.spot_event(instance))
        rig.sleep(1)
        return seen

    monkeypatch.setattr(rig.api, "observe", then_handled)
    rig.resync.run()

    assert rig.node("spot").unschedulable
    assert Metric.NOTICES_FOUND_BY_RESYNC not in rig.telemetry.metrics
