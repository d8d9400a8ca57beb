"""From a body in the queue to a moved workload, over a hollow cluster in the same process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.domain.added_nodes import added
from plimsoll.domain.clusters import Mode
from plimsoll.domain.errors import BadInput, MissingRights, Permanent, Refused, Temporary, Throttled
from plimsoll.domain.metrics import Metric
from plimsoll.domain.names import INTERRUPTION
from plimsoll.domain.node_index import REFRESH
from plimsoll.domain.nodes import Node
from plimsoll.domain.notices import SpotInterruption
from plimsoll.domain.notices.registry import DRILL_SOURCE
from plimsoll.domain.policy import Policy, Response
from plimsoll.domain.replace.throughput import SAMPLE
from plimsoll.domain.reports import Report
from plimsoll.domain.turns import GATHER
from plimsoll.services import executor
from plimsoll.services.delivery import SERIES_SHARED, SLOW_WAKE_UPS, URGENT_WAKE_UPS
from plimsoll.services.drains import PAUSE_SECONDS
from plimsoll.services.lease import LEASE_SECONDS, LeaseLost
from plimsoll.services.notices import Senders
from tests.support.builders import a_group
from tests.support.workload_sets import WiredServices, deployment, method

WEB = "/apis/apps/v1/namespaces/default/deployments/web"


@pytest.fixture
def rig():
    return WiredServices()


def a_spot_notice(rig: WiredServices, instance: str) -> SpotInterruption:
    """Return what EC2 says of an instance, under an id that no event has."""
    return SpotInterruption(
        instance=instance,
        time=rig.time,
        account="111122223333",
        region="us-east-1",
        id="found",
        action="terminate",
    )


@pytest.mark.parametrize(
    ("account", "region"), [("111122223333", "eu-west-1"), ("999988887777", "us-east-1")]
)
def test_a_notice_from_another_account_or_region_than_the_clusters_moves_nothing(
    rig, account, region
):
    instance = rig.join("spot", capacity="spot")
    body = json.loads(rig.spot_event(instance)) | {"account": account, "region": region}
    service = replace(rig.notices, senders=Senders(account="111122223333"))
    assert service.receive([json.dumps(body)]) == [None]
    assert not rig.node("spot").unschedulable
    assert rig.telemetry.metrics[Metric.NOTICES_NOT_OURS] == 1
    assert rig.wake_ups.sent == []


def test_a_notice_of_a_drill_moves_nothing_unless_drills_are_accepted(rig):
    instance = rig.join("spot", capacity="spot")
    body = json.dumps(json.loads(rig.spot_event(instance)) | {"source": DRILL_SOURCE})

    handled(rig, body)
    assert not rig.node("spot").unschedulable

    assert replace(rig.notices, senders=Senders(drills=True)).receive([body]) == [None]
    assert rig.node("spot").unschedulable


def handled(rig: WiredServices, *bodies: str) -> None:
    assert rig.notices.receive(bodies) == [None] * len(bodies)


def advised(rig: WiredServices, *instances: str) -> None:
    """Deliver recommendations, and wait until all of that moment are there."""
    handled(rig, *map(rig.rebalance_event, instances))
    rig.sleep(GATHER.total_seconds())


def interrupt(rig: WiredServices, *workloads: dict[str, Any], elsewhere: bool = False) -> str:
    """Interrupt a node on which these workloads stand; `elsewhere` adds another that has headroom."""
    instance = rig.join("spot", capacity="spot")
    rig.apply(*workloads)
    if elsewhere:
        rig.join("od")
    handled(rig, rig.spot_event(instance))
    return instance


def test_a_notice_cordons_taints_and_records_in_one_patch(rig):
    instance = rig.join("spot", capacity="spot")
    version = int(rig.node("spot").resource_version)

    handled(rig, rig.spot_event(instance))

    node = rig.node("spot")
    assert node.unschedulable
    assert [(t.key, t.value) for t in node.taints if t.key == INTERRUPTION] == [
        (INTERRUPTION, "spot-interruption")
    ]
    assert node.interruption is not None
    assert node.interruption.deadline == rig.time + timedelta(seconds=118)
    assert int(node.resource_version) == version + 1


def test_a_notice_delivered_twice_writes_once_and_wakes_the_drain_again_now_alone(rig):
    instance = rig.join("spot", capacity="spot")
    body = rig.spot_event(instance)
    handled(rig, body)
    [(message, facts)] = told = [*rig.telemetry.said]
    assert (message, facts["action"], facts["target"]) == ("acted", "cordon", "Node spot")
    rig.sleep(1)
    version = rig.node("spot").resource_version

    handled(rig, body, body)

    assert rig.telemetry.said == told
    assert rig.node("spot").resource_version == version
    assert [d for _, d in rig.wake_ups.sent] == [*URGENT_WAKE_UPS, 0]


def test_a_notice_that_comes_later_has_wake_ups_of_its_own(rig):
    for n in range(2):
        handled(rig, rig.spot_event(rig.join(f"spot-{n}", capacity="spot")))
        rig.sleep(SERIES_SHARED.total_seconds())

    assert [d for _, d in rig.wake_ups.sent] == [*URGENT_WAKE_UPS, *URGENT_WAKE_UPS]


def test_a_series_that_could_not_be_sent_is_sent_for_the_next_notice(rig, monkeypatch):
    body = rig.spot_event(rig.join("spot", capacity="spot"))

    def unanswered(*_):
        raise Temporary("SQS does not answer")

    with monkeypatch.context() as broken:
        broken.setattr(rig.wake_ups, "send", unanswered)
        [failed] = rig.notices.receive([body])
    assert isinstance(failed, Temporary)

    handled(rig, body)

    assert [d for _, d in rig.wake_ups.sent] == [*URGENT_WAKE_UPS]


def test_a_batch_wakes_its_cluster_once(rig):
    bodies = [rig.spot_event(rig.join(f"spot-{n}", capacity="spot")) for n in range(3)]

    handled(rig, *bodies)

    assert len(rig.wake_ups.sent) == len(URGENT_WAKE_UPS)


def test_an_indexed_instance_costs_no_call_to_ec2(rig):
    instance = rig.join("spot", capacity="spot")
    rig.resync.run()
    rig.aws.described.clear()

    handled(rig, rig.spot_event(instance))

    assert rig.aws.described == []
    assert rig.node("spot").unschedulable


def test_nodes_that_cannot_be_listed_keep_back_only_notices_that_the_index_does_not_lead_to(
    rig, monkeypatch
):
    indexed = rig.join("indexed", capacity="spot")
    rig.resync.run()
    new = rig.join("new", capacity="spot")

    def fail():
        raise Temporary("the API server is busy")

    monkeypatch.setattr(rig.api, "nodes", fail)
    outcomes = rig.notices.receive([rig.spot_event(indexed), rig.spot_event(new)])

    assert [type(outcome) for outcome in outcomes] == [type(None), Temporary]
    assert rig.api.node("indexed").unschedulable


def test_an_instance_that_is_not_ours_is_acknowledged_and_counted(rig):
    handled(rig, rig.spot_event("i-0aaaaaaaaaaaaaaaa"))

    assert [message for message, _ in rig.telemetry.said] == ["notice not ours"]
    assert rig.telemetry.metrics["NoticesNotOurs"] == 1
    assert rig.wake_ups.sent == []


def test_what_ec2_cannot_say_now_comes_back(rig):
    rig.join("spot", capacity="spot")
    rig.aws.fails = Temporary("EC2 is away")

    (outcome,) = rig.notices.receive([rig.spot_event("i-0bbbbbbbbbbbbbbbb")])

    assert isinstance(outcome, Temporary)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "not json",
        "[]",
        "x" * 300_000,
        '{"detail-type": "EC2 Spot Instance Interruption Warning", "source": "aws.ec2"}',
    ],
    ids=["empty", "words", "a list", "300 kB", "no detail"],
)
def test_poison_is_permanent_and_does_not_hurt_its_neighbours(rig, body):
    instance = rig.join("spot", capacity="spot")

    bad, good = rig.notices.receive([body, rig.spot_event(instance)])

    assert isinstance(bad, Permanent)
    assert good is None
    assert rig.node("spot").unschedulable


def test_an_unknown_event_is_acknowledged_and_counted(rig):
    handled(rig, '{"source": "aws.ec2", "detail-type": "EBS Snapshot Notification", "detail": {}}')

    ((_, facts),) = rig.telemetry.said
    assert "no kind of event that we know" in str(facts["because"])
    assert rig.telemetry.metrics["NoticesIgnored"] == 1


def test_a_notice_that_asks_for_nothing_is_acknowledged_without_asking_about_its_instance(rig):
    instance = rig.join("spot", capacity="spot")

    handled(rig, rig.state_event(instance, "running"))

    assert rig.telemetry.metrics["NoticesIgnored"] == 1
    assert rig.aws.described == []
    assert not rig.node("spot").unschedulable


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
    monkeypatch.setattr(executor, "TOGETHER", 1)
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


class Interrupted(WiredServices):
    """A rig in which something happens in the first pause of a reconcile."""

    meanwhile: Callable[[], None] | None = None

    def sleep(self, seconds: float) -> None:
        then, self.meanwhile = self.meanwhile, None
        if then is not None:
            then()
        super().sleep(seconds)


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


def test_on_advice_a_node_is_recorded_at_once_and_cordoned_when_its_turn_comes(rig):
    instances = [rig.join(f"spot-{n}", capacity="spot") for n in range(3)]
    advised(rig, *instances)

    def cordoned() -> list[bool]:
        return [rig.node(f"spot-{n}").unschedulable for n in range(3)]

    assert cordoned() == [False] * 3
    assert all(rig.node(f"spot-{n}").interruption for n in range(3))

    rig.drains.reconcile("harbor", "the first")
    assert cordoned() == [True, False, False]
    rig.hollow.vanish("spot-0", now=rig.time)
    rig.sleep(600)
    rig.drains.reconcile("harbor", "too early")
    left = [f"spot-{n}" for n in (1, 2)]
    assert [rig.node(name).unschedulable for name in left] == [False, False]
    rig.sleep(3600)
    rig.resync.run()
    assert rig.wake_ups.sent
    rig.drains.reconcile("harbor", "the second")
    assert [rig.node(name).unschedulable for name in left] == [True, False]


@pytest.mark.parametrize("mode", list(Mode))
def test_a_kind_that_the_policy_ignores_writes_nothing(mode):
    rig = WiredServices(mode=mode)
    instance = rig.join("spot", capacity="spot")
    ignored = (("rebalance-recommendation", Response.IGNORE),)
    rig.registry.update(replace(rig.cluster, policy=Policy(on=ignored)))
    version = rig.version()

    handled(rig, rig.rebalance_event(instance))
    rig.drains.reconcile("harbor", "me")

    assert rig.node("spot").interruption is None
    assert mode is Mode.ACT or rig.version() == version
    assert rig.reports.list("harbor") == []
    assert rig.telemetry.metrics["NoticesIgnored"] == 1


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


def test_clusters_that_are_acted_on_come_before_those_that_are_only_observed(rig, monkeypatch):
    observed = rig.join("a-observed", capacity="spot")
    acted = rig.join("spot", capacity="spot")
    rig.registry.add(replace(rig.cluster, name="aaa", mode=Mode.OBSERVE))
    rig.aws.known[observed] = replace(
        rig.aws.known[observed], tags=(("kubernetes.io/cluster/aaa", "owned"),)
    )
    order: list[str] = []
    real = rig.open

    def opened(cluster):
        order.append(cluster.name)
        return real(cluster)

    monkeypatch.setattr(rig, "open", opened)

    handled(rig, rig.spot_event(observed), rig.spot_event(acted))

    assert order == ["harbor", "aaa"]


@pytest.mark.parametrize(("state", "lists"), [(None, 1), ("terminated", 0)])
def test_notices_for_nodes_that_are_gone_cost_one_list_or_none(rig, monkeypatch, state, lists):
    instances = [rig.join(f"spot-{n}", capacity="spot") for n in range(3)]
    rig.resync.run()
    for n in range(3):
        rig.hollow.vanish(f"spot-{n}", now=rig.time)
    rig.sleep(600)
    counted = []
    nodes = rig.api.nodes

    def listed():
        counted.append("a list")
        return nodes()

    monkeypatch.setattr(rig.api, "nodes", listed)

    event = rig.spot_event if state is None else partial(rig.state_event, state=state)
    handled(rig, *(event(instance) for instance in instances))

    assert len(counted) == lists


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


def test_the_resync_closes_the_report_of_a_node_that_is_no_more(rig):
    instance = rig.join("spot", capacity="spot")
    handled(rig, rig.spot_event(instance))
    rig.drains.reconcile("harbor", "me")
    rig.hollow.vanish("spot", now=rig.time)
    rig.sleep(600)

    rig.resync.run()

    (report,) = rig.reports.list("harbor")
    assert report.closed == rig.time


def test_bad_input_names_the_field(rig):
    (bad,) = rig.notices.receive([rig.spot_event("i-not-an-id")])

    assert isinstance(bad, BadInput)
    assert "instance-id" in str(bad)


def test_the_resync_does_not_say_again_what_an_event_told(rig):
    instance = rig.join("spot", capacity="spot")
    handled(rig, rig.spot_event(instance))
    rig.sleep(1)
    version = rig.node("spot").resource_version
    rig.aws.silent = [a_spot_notice(rig, instance)]

    rig.resync.run()

    assert rig.node("spot").resource_version == version


def test_a_node_with_the_record_of_a_newer_version_is_left_alone(rig):
    record = {"metadata": {"annotations": {INTERRUPTION: '{"v": 2}'}}}
    instance = rig.join("spot", capacity="spot")
    path = "/api/v1/nodes/spot"
    merge = "application/merge-patch+json"
    rig.hollow.handle("PATCH", path, now=rig.time, body=record, content_type=merge)
    version = rig.node("spot").resource_version

    handled(rig, rig.spot_event(instance))

    assert rig.node("spot").resource_version == version
    assert rig.wake_ups.sent == []
    _, facts = rig.telemetry.said[-1]
    assert "spot is left alone" in str(facts["because"])


def test_a_node_that_somebody_else_writes_to_is_read_again(rig):
    instance = rig.join("spot", capacity="spot")
    real = rig.api.cordon
    meddled: list[Node] = []

    def meddle(node, interruption):
        if len(meddled) < 2:
            meddled.append(node)
            rig.api.record(node, interruption)
        real(node, interruption)

    rig.api.cordon = meddle
    handled(rig, rig.spot_event(instance))

    assert len(meddled) == 2
    assert rig.node("spot").unschedulable


def test_a_registry_that_is_away_makes_only_its_own_notices_come_back(rig):
    instance = rig.join("spot", capacity="spot")
    rig.resync.run()

    def away(name):
        raise Temporary("the table is away")

    rig.registry.get = away

    ours, unknown = rig.notices.receive(
        [rig.spot_event(instance), '{"source": "aws.ec2", "detail-type": "Other", "detail": {}}']
    )
    assert isinstance(ours, Temporary)
    assert unknown is None


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
