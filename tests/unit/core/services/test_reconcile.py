"""Reconciles, from a node that is cordoned to a moved workload, over a fake cluster."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.domain.drain import added_entry, plan_drain
from plimsoll.domain.errors import Blocked, MissingRights, Refused, Temporary, Throttled
from plimsoll.domain.observation import UNNOTICED
from plimsoll.domain.reports import Report
from plimsoll.services import executor
from plimsoll.services.lease import LEASE_SECONDS
from plimsoll.services.reconcile import PAUSE_SECONDS
from tests.support.builders import a_group
from tests.support.workload_sets import (
    Interrupted,
    WiredServices,
    a_pod_of_a_database,
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
    assert any("a policy denies it" in str(reason) for reason in report.reasons)


def test_an_eviction_that_is_refused_is_tried_again_after_five_seconds(rig, monkeypatch):
    web = deployment(replicas=2)
    web["spec"]["strategy"] = {"type": "Recreate"}
    interrupt(rig, web, elsewhere=True)
    tried = []

    def refuse(pod, *_):
        tried.append((pod.name, rig.time))
        raise Refused("an admission webhook denies it")

    monkeypatch.setattr(KubernetesCluster, "evict", method(refuse))
    rig.drains.reconcile("harbor", "me", seconds=12)

    times = {name: [at for pod, at in tried if pod == name] for name, _ in tried}
    assert {len(each) for each in times.values()} == {3}
    assert all(b - a >= timedelta(seconds=5) for each in times.values() for a, b in pairwise(each))


def test_a_refusal_that_a_budget_repeats_each_second_is_logged_once_and_counted_at_the_end(
    rig, monkeypatch
):
    web = deployment(replicas=1)
    web["spec"]["strategy"] = {"type": "Recreate"}
    interrupt(rig, web, elsewhere=True)
    tried = []

    def refuse(pod, *_):
        tried.append(pod.name)
        raise Blocked("the budget allows none")

    monkeypatch.setattr(KubernetesCluster, "evict", method(refuse))
    warned: list[tuple[str, object]] = []
    monkeypatch.setattr(
        rig.telemetry, "warn", lambda what, **facts: warned.append((what, facts.get("times")))
    )
    rig.drains.reconcile("harbor", "me", seconds=12)

    assert len(tried) > 10
    assert warned == [("action not done", None), ("action not done again", len(tried) - 1)]


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


def test_a_reconcile_begins_nothing_more_when_its_time_is_over(rig, monkeypatch):
    monkeypatch.setattr(executor, "ACTIONS_PER_ROUND", 1)
    interrupt(rig, deployment("web"), deployment("shop"), elsewhere=True)

    rig.drains.reconcile("harbor", "me", seconds=0)

    assert 0 < sum(pod.released for pod in rig.api.observe().pods) < 6


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


@pytest.mark.parametrize(("takes", "before"), [(4, 2), (1.4, 0.6)], ids=["seconds", "a second"])
def test_where_observations_take_long_a_pod_is_told_before_its_last_call_and_not_after(
    rig, monkeypatch, takes, before
):
    interrupt(rig, deployment("web", replicas=1))
    deadline = rig.node("spot").interruption.deadline
    grace = timedelta(seconds=10)  # of the pods of `deployment`
    rig.sleep(((deadline - grace) - rig.time).total_seconds() - takes - before)
    observe, evict, told = rig.api.observe, rig.api.evict, []

    def slowly():
        rig.sleep(takes)
        return observe()

    def evicted(pod, grace_seconds=None):
        told.append((rig.time, grace_seconds))
        evict(pod, grace_seconds)

    monkeypatch.setattr(KubernetesCluster, "observe", method(slowly))
    monkeypatch.setattr(KubernetesCluster, "evict", method(evicted))
    rig.drains.reconcile("harbor", "me", seconds=15)

    assert told[0] == (deadline - grace - timedelta(seconds=before), None)


def test_a_database_that_keeps_the_first_plan_waiting_takes_no_time_from_a_pod(rig, monkeypatch):
    interrupt(rig, deployment("web", replicas=1))
    last_call = rig.node("spot").interruption.deadline - timedelta(seconds=10)
    rig.sleep((last_call - rig.time).total_seconds() - 10)
    evict, told = rig.api.evict, []

    def throttled(*_):
        rig.sleep(4)
        raise Temporary("Rate exceeded")

    def evicted(pod, grace_seconds=None):
        told.append(rig.time)
        evict(pod, grace_seconds)

    monkeypatch.setattr(rig.pools, "read", throttled)
    monkeypatch.setattr(rig.pools, "shifts", throttled)
    monkeypatch.setattr(KubernetesCluster, "evict", method(evicted))
    rig.drains.reconcile("harbor", "me", seconds=15)

    assert told[0] == last_call


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

    monkeypatch.setattr("plimsoll.services.reconcile.plan_drain", slowly)
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


def test_a_pod_that_an_earlier_reconcile_evicted_counts_while_its_controller_cannot_make_it_anew(
    rig,
):
    interrupt(rig, *map(a_pod_of_a_database, ("db-0", "db-1", "db-2")), elsewhere=True)
    rig.drains.reconcile("harbor", "first", seconds=0)
    rig.sleep(20)
    assert rig.ready("db") == 2  # a quota or a webhook lets nobody make the third

    rig.drains.reconcile("harbor", "next", seconds=30)
    assert rig.ready("db") == 2


def test_a_drain_goes_on_without_its_node_groups(rig):
    interrupt(rig, deployment(replicas=1), elsewhere=True)
    rig.aws.fails = Temporary("Auto Scaling is away")

    rig.drains.reconcile("harbor", "me")

    assert len(rig.pods_on("od")) == 1
    assert "node groups not read" in rig.telemetry.warned


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
            added=added_entry(group, 1, rig.time, "token"),
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

    def busy(pod, replica_set, interruption, moved, do_not_disrupt):
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
    rig.sleep(UNNOTICED.total_seconds())  # until then its Node may tell of the launch before

    rig.resync.run()
    assert rig.wake_ups.sent
    rig.drains.reconcile("harbor", "started")

    node = rig.node("spot")
    assert (node.unschedulable, node.interruption) == (before, None)
    assert [t.key for t in node.taints if "plimsoll" in t.key] == []
    assert rig.index.find([instance])[instance].launched == again.launched


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
