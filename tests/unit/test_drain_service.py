"""Reconciles, from a node that is cordoned to a moved workload, over a hollow cluster."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.domain.added_nodes import added
from plimsoll.domain.clusters import Mode
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.errors import MissingRights, Refused, Temporary, Throttled
from plimsoll.domain.node_index import REFRESH
from plimsoll.domain.replace.throughput import SAMPLE
from plimsoll.domain.reports import Report
from plimsoll.services import executor
from plimsoll.services.drains import PAUSE_SECONDS
from plimsoll.services.lease import LEASE_SECONDS, LeaseLost
from tests.support.builders import a_group
from tests.support.workload_sets import (
    Interrupted,
    WiredServices,
    a_spot_notice,
    advised,
    deployment,
    handled,
    interrupt,
    method,
)

WEB = "/apis/apps/v1/namespaces/default/deployments/web"


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
    assert any(reason.startswith("would release Pod default/web") for reason in report.reasons)


@pytest.mark.parametrize("may_delete", [True, False], ids=["all rights", "none to delete pods"])
def test_a_reconcile_moves_a_deployment_without_losing_a_ready_replica(
    rig, monkeypatch, may_delete
):
    def refuse(*_):
        raise MissingRights("cannot delete pods")

    if not may_delete:
        monkeypatch.setattr(KubernetesCluster, "delete", method(refuse))
    interrupt(rig, deployment(replicas=3), elsewhere=True)
    lowest = 3

    for turn in range(4):
        rig.drains.reconcile("harbor", f"reconcile-{turn}")
        lowest = min(lowest, rig.ready("web"))
        rig.sleep(1)

    assert lowest == 3
    assert rig.pods_on("spot") == []
    assert len(rig.pods_on("od")) == 3
    web = rig.get(WEB)
    assert web["spec"]["replicas"] == 3
    (report,) = rig.reports.list("harbor")
    assert report.lowest_ready == {"Deployment default/web": 3}
    assert report.emptied is not None


def test_what_was_reclaimed_is_remembered_for_all_clusters_and_told_once(rig):
    instance = rig.join("spot", capacity="spot")
    handled(rig, rig.spot_event(instance))
    handled(rig, rig.spot_event(instance))
    (event,) = rig.pools.read(rig.cluster.region, rig.now())
    assert (event.kind, event.pool.capacity) == ("interruption", "spot")


def test_a_release_that_is_refused_is_not_tried_again_in_the_same_reconcile(rig, monkeypatch):
    interrupt(rig, deployment(replicas=1), elsewhere=True)
    tried = []

    def refuse(pod, *_):
        tried.append(pod.name)
        raise Refused("a policy denies it")

    monkeypatch.setattr(KubernetesCluster, "release", method(refuse))
    rig.drains.reconcile("harbor", "me")

    assert len(tried) == 1
    (report,) = rig.reports.list("harbor")
    assert any("a policy denies it" in reason for reason in report.reasons)


@pytest.mark.parametrize(("by_owner", "asked"), [(False, [("base", 1)]), (True, [])])
def test_an_instance_that_its_owner_terminates_buys_no_capacity(rig, by_owner, asked):
    instance = rig.join("spot", capacity="spot")
    rig.apply(deployment(replicas=3, cpu="2"))
    rig.aws.groups = [a_group("base", desired=0)]
    rig.aws.known[instance] = replace(
        rig.aws.known[instance], state="shutting-down", ended_by_owner=by_owner
    )
    handled(rig, rig.state_event(instance, "shutting-down"))

    rig.drains.reconcile("harbor", "me", seconds=0)

    assert rig.aws.asked == asked


def test_capacity_is_asked_for_in_the_first_observation(rig):
    instance = rig.join("spot", capacity="spot")
    rig.apply(deployment(replicas=3, cpu="2"))
    rig.aws.groups = [a_group("base", desired=0)]
    handled(rig, rig.spot_event(instance))

    rig.drains.reconcile("harbor", "me", seconds=0)

    assert rig.aws.asked == [("base", 1)]


def test_a_cluster_that_does_not_answer_has_capacity_asked_for_by_the_sums_of_its_node_index(rig):
    instance = rig.join("spot", capacity="spot")
    rig.apply(deployment(replicas=3, cpu="2"))
    rig.aws.groups = [a_group("base", desired=0), a_group("spot", capacity="spot", desired=1)]
    rig.aws.groups[1] = replace(rig.aws.groups[1], instances=frozenset({instance}))
    rig.resync.run()
    rig.aws.silent = [a_spot_notice(rig, instance)]
    rig.hollow.take_api_away(now=rig.time)

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


def test_a_reconcile_begins_nothing_more_when_its_time_is_over(rig, monkeypatch):
    monkeypatch.setattr(executor, "ROUND", 1)
    interrupt(rig, deployment("web"), deployment("shop"), elsewhere=True)

    rig.drains.reconcile("harbor", "me", seconds=0)

    assert 0 < sum(pod.released for pod in rig.api.observe().pods) < 6


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
        rig.hollow.take_api_away(now=rig.time)
        rig.sleep(2 * LEASE_SECONDS)
        rig.meanwhile = lambda: rig.hollow.bring_api_back(now=rig.time)

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


def test_a_reconcile_observes_when_a_pod_has_to_be_told_and_not_a_second_later(rig, monkeypatch):
    interrupt(rig, deployment("web", replicas=1))
    deadline = rig.node("spot").interruption.deadline
    grace = timedelta(seconds=10)  # of the pods of `deployment`
    rig.sleep(((deadline - grace) - rig.time).total_seconds() - 2.4)
    evict, told = rig.api.evict, []

    def evicted(pod, grace_seconds=None):
        told.append((rig.time, grace_seconds))
        evict(pod, grace_seconds)

    monkeypatch.setattr(KubernetesCluster, "evict", method(evicted))
    rig.drains.reconcile("harbor", "me", seconds=10)

    assert told[0] == (deadline - grace, None)


def test_a_reconcile_outlives_an_outage_of_the_api_server_and_goes_on_at_once():
    rig = Interrupted()
    interrupt(rig, deployment("web", replicas=1), elsewhere=True)

    def an_outage() -> None:
        rig.hollow.take_api_away(now=rig.time)
        rig.meanwhile = lambda: rig.hollow.bring_api_back(now=rig.time)

    rig.meanwhile = an_outage
    rig.drains.reconcile("harbor", "me")

    assert rig.telemetry.warned == ["observation failed"]
    assert len(rig.pods_on("od")) == 1
    assert rig.ready("web") == 1


def test_a_reconcile_whose_lease_went_to_another_ends_at_once():
    rig = Interrupted()
    interrupt(rig, deployment("web", replicas=1), elsewhere=True)

    def somebody_takes_it() -> None:
        rig.time += timedelta(seconds=60)
        assert rig.api.acquire("another", 60)

    rig.meanwhile = somebody_takes_it
    with pytest.raises(LeaseLost):
        rig.drains.reconcile("harbor", "me", seconds=120)


def test_where_observations_take_long_a_pod_is_told_before_its_last_call_and_not_after(
    rig, monkeypatch
):
    interrupt(rig, deployment("web", replicas=1))
    deadline = rig.node("spot").interruption.deadline
    grace = timedelta(seconds=10)  # of the pods of `deployment`
    rig.sleep(((deadline - grace) - rig.time).total_seconds() - 6)
    observe, evict, told = rig.api.observe, rig.api.evict, []

    def slowly():
        rig.sleep(4)
        return observe()

    def evicted(pod, grace_seconds=None):
        told.append((rig.time, grace_seconds))
        evict(pod, grace_seconds)

    monkeypatch.setattr(KubernetesCluster, "observe", method(slowly))
    monkeypatch.setattr(KubernetesCluster, "evict", method(evicted))
    rig.drains.reconcile("harbor", "me", seconds=15)

    assert told[0] == (deadline - grace - timedelta(seconds=2), None)


def test_where_plans_take_long_a_pod_is_told_before_its_last_call_and_not_after(rig, monkeypatch):
    interrupt(rig, deployment("web", replicas=1))
    last_call = rig.node("spot").interruption.deadline - timedelta(seconds=10)
    rig.sleep((last_call - rig.time).total_seconds() - 9)
    evict, told = rig.api.evict, []

    def slowly(*seen, **known):
        rig.sleep(3)
        return plan_drain(*seen, **known)

    def evicted(pod, grace_seconds=None):
        told.append(rig.time)
        evict(pod, grace_seconds)

    monkeypatch.setattr("plimsoll.services.drains.plan_drain", slowly)
    monkeypatch.setattr(KubernetesCluster, "evict", method(evicted))
    rig.drains.reconcile("harbor", "me", seconds=15)

    assert last_call - timedelta(seconds=2) <= told[0] <= last_call


def test_what_others_asked_for_during_a_reconcile_is_not_asked_for_again():
    rig = Interrupted()
    instance = rig.join("spot", capacity="spot")
    rig.join("od")
    rig.apply(deployment("web", replicas=1))
    rig.aws.groups = [a_group("base", desired=0)]
    handled(rig, rig.spot_event(instance))

    def another_reconcile_asks() -> None:
        rig.apply(deployment("more", replicas=1, cpu="8"))
        rig.aws.groups = [a_group("base", desired=1)]

    rig.meanwhile = another_reconcile_asks
    rig.drains.reconcile("harbor", "me")

    assert rig.aws.asked == []


def test_a_report_is_there_before_the_first_pause_for_a_reconcile_may_be_killed_in_it():
    rig = Interrupted()
    interrupt(rig, deployment("web", replicas=1))
    found: list[str] = []

    rig.meanwhile = lambda: found.extend(r.node for r in rig.reports.list("harbor"))
    rig.drains.reconcile("harbor", "me")

    assert found == ["spot"]


def test_reports_that_say_nothing_yet_wait_while_a_plan_moves_many_pods():
    rig = Interrupted()
    instance = rig.join("spot", capacity="spot", cpu="64")
    rig.apply(deployment("web", replicas=SAMPLE, cpu="100m"))
    rig.join("od", cpu="64")
    handled(rig, rig.spot_event(instance))
    found: list[Report] = []

    rig.meanwhile = lambda: found.extend(rig.reports.list("harbor"))
    rig.drains.reconcile("harbor", "me")

    assert found == []
    assert [report.node for report in rig.reports.list("harbor")] == ["spot"]


def a_pod_of_a_database(name: str) -> dict[str, Any]:
    """Return a pod whose controller nobody knows: it does not run, so the test makes pods anew."""
    owner = {"apiVersion": "example.com/v1", "kind": "Database", "name": "db", "uid": "uid-of-db"}
    container = {"name": "main", "image": "db", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"app": "db"},
            "ownerReferences": [owner | {"controller": True}],
        },
        "spec": {"containers": [container]},
    }


def test_a_pod_that_a_killed_reconcile_evicted_counts_until_its_controller_had_time_to_make_it_anew(
    rig,
):
    interrupt(rig, *map(a_pod_of_a_database, ("db-0", "db-1", "db-2")), elsewhere=True)
    rig.drains.reconcile("harbor", "killed", seconds=0)
    assert rig.api.acquire("killed", LEASE_SECONDS)
    rig.sleep(LEASE_SECONDS + 1)
    assert rig.ready("db") == 2  # and no pod tells of the third

    rig.drains.reconcile("harbor", "next", seconds=5)
    assert rig.ready("db") == 2

    rig.apply(a_pod_of_a_database("db-0"))
    rig.drains.reconcile("harbor", "last", seconds=15)
    assert len(rig.pods_on("spot")) == 1
    assert rig.ready("db") == 2


def test_a_drain_goes_on_without_its_node_groups(rig):
    interrupt(rig, deployment(replicas=1), elsewhere=True)
    rig.aws.fails = Temporary("Auto Scaling is away")

    rig.drains.reconcile("harbor", "me")

    assert len(rig.pods_on("od")) == 1
    assert "node groups not read" in rig.telemetry.warned


def test_a_reconcile_ends_at_once_while_another_is_at_work(rig):
    rig.join("spot", capacity="spot")
    assert rig.api.acquire("other", 30)

    assert rig.drains.reconcile("harbor", "me") == 0


def test_a_reconcile_whose_time_is_over_before_its_work_wakes_the_next_once_its_lease_is_free(
    rig, monkeypatch
):
    interrupt(rig, deployment("web", replicas=1))
    rig.wake_ups.sent.clear()
    send, free = rig.wake_ups.send, []

    def sent(cluster, delays):
        free.append(rig.api.acquire("the next", 1))
        send(cluster, delays)

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
    rig.hollow.vanish("spot", now=rig.time)
    rig.wake_ups.sent.clear()

    rig.drains.reconcile("harbor", "me", seconds=600)

    assert rig.wake_ups.sent == []


def test_a_reconcile_whose_cluster_does_not_answer_wakes_nobody_for_its_message_comes_back(rig):
    interrupt(rig, deployment("web", replicas=1))
    rig.wake_ups.sent.clear()
    rig.hollow.take_api_away(now=rig.time)

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


def test_the_lease_of_a_reconcile_that_was_killed_runs_out(rig):
    rig.join("od")
    assert rig.api.acquire("killed", 10)
    rig.sleep(11)

    assert rig.drains.reconcile("harbor", "me") == 1


def test_a_wake_up_for_a_cluster_that_was_removed_is_nothing_to_do(rig):
    assert rig.drains.reconcile("elsewhere", "me") == 0
    assert rig.telemetry.warned == ["wake-up for a cluster that is not registered"]


def test_an_empty_node_that_is_terminated_is_taken_off_what_was_added(rig):
    instance = rig.join("spot", capacity="spot")
    group = replace(a_group(desired=1), instances=frozenset({instance}), renew=True)
    rig.aws.groups = [group]
    rig.reports.merge(
        Report(
            interruption="i-gone@noon",
            cluster="harbor",
            node="gone",
            kind="spot-interruption",
            noticed=rig.time,
            added=added(group, 1, rig.time, "token"),
        )
    )
    advised(rig, instance)

    for _ in range(2):
        rig.drains.reconcile("harbor", "me", seconds=0)

    assert rig.aws.renewed == [instance]
    assert sum(n for report in rig.reports.list("harbor") for n in report.added.values()) == 0


def test_a_reconcile_that_can_only_wait_ends_after_its_first_observation(rig):
    instance = rig.join("spot", capacity="spot")
    rig.apply(deployment(replicas=1))
    advised(rig, instance)

    rig.drains.reconcile("harbor", "its turn")

    assert rig.drains.reconcile("harbor", "me") == 1


def test_a_report_that_cannot_be_written_is_warned_about_and_stops_nothing(rig, monkeypatch):
    instance = rig.join("spot", capacity="spot")
    handled(rig, rig.spot_event(instance))
    rig.drains.reconcile("harbor", "first")
    assert rig.telemetry.warned == []

    def fail(_):
        raise Temporary("the table is away")

    monkeypatch.setattr(rig.reports, "merge", fail)
    rig.drains.reconcile("harbor", "second")

    assert set(rig.telemetry.warned) == {"report not written"}


def test_what_releases_took_is_not_waited_for_once_more(rig, monkeypatch):
    interrupt(rig, deployment("web", replicas=3), elsewhere=True)
    release, observe, observed = rig.api.release, rig.api.observe, []

    def slowly(*args):
        rig.sleep(3)
        release(*args)

    def noted():
        observed.append(rig.time)
        return observe()

    monkeypatch.setattr(KubernetesCluster, "release", method(slowly))
    monkeypatch.setattr(KubernetesCluster, "observe", method(noted))
    rig.drains.reconcile("harbor", "me", seconds=12)

    assert observed[1] - observed[0] == timedelta(seconds=3 * 3 + PAUSE_SECONDS)


def test_an_api_that_asks_for_patience_is_left_alone_that_long(rig, monkeypatch):
    interrupt(rig, deployment(replicas=1), elsewhere=True)

    def busy(pod, replica_set, interruption, moved):
        raise Throttled("too many requests", retry_after=15)

    monkeypatch.setattr(KubernetesCluster, "release", method(busy))

    assert rig.drains.reconcile("harbor", "me", seconds=14) == 1


@pytest.mark.parametrize("before", [False, True])
def test_a_node_whose_instance_is_started_again_is_as_it_was_before_us(rig, before):
    instance = rig.join("spot", capacity="spot")
    rig.join("od")
    rig.resync.run()
    rig.api.mark_unschedulable(rig.node("spot"), unschedulable=before)
    handled(rig, rig.spot_event(instance, **{"instance-action": "stop"}))
    rig.sleep(130)
    rig.aws.known[instance] = replace(rig.aws.known[instance], state="stopped")
    rig.drains.reconcile("harbor", "stopped")
    rig.sleep(60)
    rig.wake_ups.sent.clear()
    again = replace(rig.aws.known[instance], state="running", launched=rig.time)
    rig.aws.known[instance] = again

    rig.resync.run()
    assert rig.wake_ups.sent
    rig.drains.reconcile("harbor", "started")

    node = rig.node("spot")
    assert (node.unschedulable, node.interruption) == (before, None)
    assert [t.key for t in node.taints if "plimsoll" in t.key] == []
    assert rig.index.find([instance])[instance].launched == again.launched


def test_placement_writes_an_index_entry_again_only_when_it_changed_is_old_or_of_the_oldest(rig):
    oldest = rig.join("od")
    rig.sleep(1)
    instance = rig.join("od-2")
    written: list[list[str]] = []
    real = rig.index.put

    def put(entries):
        written.append([entry.instance for entry in entries])
        real(entries)

    rig.index.put = put
    for seconds in (0, 300, REFRESH.total_seconds() - 300):
        rig.sleep(seconds)
        rig.placement.run()

    assert written == [[oldest, instance], [oldest], [oldest, instance]]


def test_ec2_is_asked_once_in_a_reconcile_about_an_instance_whose_end_is_recorded(rig):
    instance = rig.join("spot", capacity="spot")
    handled(rig, rig.spot_event(instance))
    rig.aws.known[instance] = replace(rig.aws.known[instance], state="terminated")
    rig.sleep(130)
    rig.drains.reconcile("harbor", "first")
    rig.aws.described.clear()

    rig.drains.reconcile("harbor", "second")

    assert rig.aws.described == [instance]


def test_an_instance_that_ec2_does_not_know_is_not_proven_gone(rig):
    instance = interrupt(rig, deployment(replicas=1, cpu="3"))
    del rig.aws.known[instance]
    rig.sleep(130)

    rig.drains.reconcile("harbor", "me", seconds=0)

    node = rig.node("spot")
    assert node.interruption is not None
    assert node.interruption.gone is None
    assert not any(facts.get("action") == "force-delete" for _, facts in rig.telemetry.said)
