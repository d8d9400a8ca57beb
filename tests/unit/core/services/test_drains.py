"""Which reconcile is at work, for how long, and which comes next, over a fake cluster."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.domain.errors import Temporary
from plimsoll.domain.registry import Mode
from plimsoll.services.lease import LEASE_SECONDS, LeaseLost
from plimsoll.services.reconcile import PAUSE_SECONDS
from tests.support.builders import a_group
from tests.support.workload_sets import (
    Interrupted,
    WiredServices,
    a_spot_notice,
    deployment,
    handled,
    interrupt,
    method,
)


@pytest.fixture
def rig():
    return WiredServices()


@pytest.mark.parametrize("how", [{"mode": Mode.OBSERVE}, {"kill_switch": True}], ids=str)
def test_an_observed_cluster_is_planned_for_and_reported_but_not_written_to(how):
    rig = WiredServices(**how)
    instance = rig.join("spot", capacity="spot")
    rig.apply(deployment())
    rig.join("od")
    version = rig.version()

    handled(rig, rig.spot_event(instance))
    rig.drains.reconcile("harbor", "me")
    rig.resync.run()

    assert rig.version() == version
    assert rig.wake_ups.sent == []
    (report,) = rig.reports.list("harbor")
    assert any(str(reason).startswith("would release") for reason in report.reasons)


def test_a_wake_up_for_a_cluster_that_was_removed_is_nothing_to_do(rig):
    assert rig.drains.reconcile("elsewhere", "me") == 0
    assert rig.telemetry.warned == ["wake-up for a cluster that is not registered"]


def test_a_cluster_that_does_not_answer_has_capacity_asked_for_by_the_sums_of_its_node_index(rig):
    instance = rig.join("spot", capacity="spot")
    rig.apply(deployment(replicas=3, cpu="2"))
    rig.aws.groups = [a_group("base", desired=0), a_group("spot", capacity="spot", desired=1)]
    rig.aws.groups[1] = replace(rig.aws.groups[1], instances=frozenset({instance}))
    rig.resync.run()
    rig.aws.silent = [a_spot_notice(rig, instance)]
    rig.fake_cluster.take_api_away(now=rig.time)

    outcomes = rig.notices.receive([rig.spot_event(instance)])
    assert [type(outcome) for outcome in outcomes] == [Temporary]
    assert rig.wake_ups.sent == [("harbor", 0)]
    for holder, seconds, asked in (("early", 4, []), ("first", 19, [("base", 1)])):
        with pytest.raises(Temporary):
            rig.drains.reconcile("harbor", holder, seconds=seconds)
        assert rig.aws.asked == asked
    with pytest.raises(Temporary):
        rig.drains.reconcile("harbor", "second")
    assert rig.aws.asked == [("base", 1)], "what is on its way is not asked for again"
    assert not rig.telemetry.warned


def test_nobody_takes_the_lease_while_an_observation_or_an_act_lasts_long(rig, monkeypatch):
    interrupt(rig, deployment("web", replicas=1), elsewhere=True)
    taken = []

    def slowly(call):
        def called(*args, **named):
            rig.sleep(3 * LEASE_SECONDS)
            taken.append(rig.api.acquire("another", LEASE_SECONDS))
            return call(*args, **named)

        return called

    monkeypatch.setattr(KubernetesCluster, "observe", method(slowly(rig.api.observe)))
    monkeypatch.setattr(KubernetesCluster, "release", method(slowly(rig.api.release)))
    rig.drains.reconcile("harbor", "me", seconds=100)

    assert len(taken) > 2
    assert not any(taken)


def test_what_is_lost_in_the_middle_of_a_wave_begins_nothing_more(rig, monkeypatch):
    interrupt(rig, deployment("web"), elsewhere=True)
    release, released = rig.api.release, []

    def lost_meanwhile(pod, *args):
        release(pod, *args)
        released.append(pod.name)
        rig.time += timedelta(seconds=2 * LEASE_SECONDS)  # the process stood still
        assert rig.api.acquire("another", 60)

    monkeypatch.setattr(KubernetesCluster, "release", method(lost_meanwhile))
    with pytest.raises(Temporary):
        rig.drains.reconcile("harbor", "me")

    assert len(released) == 1
    assert [report.node for report in rig.reports.list("harbor")] == ["spot"]


def test_a_lease_that_ran_out_in_an_outage_and_that_nobody_took_is_held_again():
    rig = Interrupted()
    interrupt(rig, deployment("web", replicas=1), elsewhere=True)

    def an_outage() -> None:
        rig.fake_cluster.take_api_away(now=rig.time)
        rig.sleep(2 * LEASE_SECONDS)
        rig.meanwhile = lambda: rig.fake_cluster.bring_api_back(now=rig.time)

    rig.meanwhile = an_outage
    rig.drains.reconcile("harbor", "me")

    assert rig.telemetry.warned == ["observation failed"]
    assert len(rig.pods_on("od")) == 1


def test_a_lease_is_not_renewed_once_its_reconcile_is_over(rig):
    interrupt(rig, deployment("web", replicas=1))
    rig.drains.reconcile("harbor", "me", seconds=5)

    assert rig.api.acquire("the next", LEASE_SECONDS)
    rig.sleep(LEASE_SECONDS + 1)
    assert rig.api.acquire("another", LEASE_SECONDS)


def test_the_lease_of_a_reconcile_that_was_killed_runs_out(rig):
    rig.join("od")
    assert rig.api.acquire("killed", 10)
    rig.sleep(11)

    assert rig.drains.reconcile("harbor", "me") == 1


def test_a_reconcile_ends_at_once_while_another_is_at_work(rig):
    rig.join("spot", capacity="spot")
    assert rig.api.acquire("other", 30)

    assert rig.drains.reconcile("harbor", "me") == 0


def test_a_reconcile_whose_lease_went_to_another_ends_at_once():
    rig = Interrupted()
    interrupt(rig, deployment("web", replicas=1), elsewhere=True)

    def somebody_takes_it() -> None:
        rig.time += timedelta(seconds=60)
        assert rig.api.acquire("another", 60)

    rig.meanwhile = somebody_takes_it
    with pytest.raises(LeaseLost):
        rig.drains.reconcile("harbor", "me", seconds=120)


def test_a_reconcile_outlives_an_outage_of_the_api_server_and_goes_on_at_once():
    rig = Interrupted()
    interrupt(rig, deployment("web", replicas=1), elsewhere=True)

    def an_outage() -> None:
        rig.fake_cluster.take_api_away(now=rig.time)
        rig.meanwhile = lambda: rig.fake_cluster.bring_api_back(now=rig.time)

    rig.meanwhile = an_outage
    rig.drains.reconcile("harbor", "me")

    assert rig.telemetry.warned == ["observation failed"]
    assert len(rig.pods_on("od")) == 1
    assert rig.ready("web") == 1


def test_a_reconcile_whose_time_is_over_before_its_work_wakes_the_next_once_its_lease_is_free(
    rig, monkeypatch
):
    interrupt(rig, deployment("web", replicas=1))
    rig.wake_ups.sent.clear()
    send, free = rig.wake_ups.send, []

    def sent(cluster, delays, traceparent=None):
        free.append(rig.api.acquire("the next", 1))
        send(cluster, delays, traceparent)

    monkeypatch.setattr(rig.wake_ups, "send", sent)
    rig.drains.reconcile("harbor", "me", seconds=5)

    assert rig.wake_ups.sent == [("harbor", PAUSE_SECONDS)]
    assert free == [True]


def test_wake_ups_that_come_twice_lead_to_no_second_series(rig, monkeypatch):
    interrupt(rig, deployment("web", replicas=1))
    rig.wake_ups.sent.clear()
    observe, copies = rig.api.observe, list[int]()

    def observed():
        copies.append(rig.drains.reconcile("harbor", f"copy {len(copies)}"))
        return observe()

    monkeypatch.setattr(KubernetesCluster, "observe", method(observed))
    rig.drains.reconcile("harbor", "me", seconds=5)

    assert copies
    assert not any(copies)
    assert len(rig.wake_ups.sent) == 1


def test_a_reconcile_with_nothing_left_wakes_nobody(rig):
    interrupt(rig, deployment("web", replicas=1), elsewhere=True)
    rig.fake_cluster.vanish("spot", now=rig.time)
    rig.wake_ups.sent.clear()

    rig.drains.reconcile("harbor", "me", seconds=600)

    assert rig.wake_ups.sent == []


def test_a_reconcile_whose_cluster_does_not_answer_wakes_nobody_for_its_message_comes_back(rig):
    interrupt(rig, deployment("web", replicas=1))
    rig.wake_ups.sent.clear()
    rig.fake_cluster.take_api_away(now=rig.time)

    with pytest.raises(Temporary):
        rig.drains.reconcile("harbor", "me", seconds=5)

    assert rig.wake_ups.sent == []


def test_a_reconcile_ends_in_order_where_the_next_wake_up_cannot_be_sent(rig, monkeypatch):
    def unanswered(*_: object) -> None:
        raise Temporary("SQS is away")

    interrupt(rig, deployment("web", replicas=1))
    monkeypatch.setattr(rig.wake_ups, "send", unanswered)

    assert rig.drains.reconcile("harbor", "me", seconds=5)
    assert rig.telemetry.warned == ["next wake-up not sent"]
    assert [report.node for report in rig.reports.list("harbor")] == ["spot"]
