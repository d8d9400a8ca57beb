"""Notices, from a body in the queue to a node that is cordoned, over a fake cluster."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from plimsoll.domain.errors import (
    BadInput,
    NotFound,
    Permanent,
    Refused,
    Temporary,
    Throttled,
)
from plimsoll.domain.interruptions import Policy, Response
from plimsoll.domain.kubernetes import INTERRUPTION, Node
from plimsoll.domain.notices import DRILL_SOURCE
from plimsoll.domain.registry import Mode
from plimsoll.domain.reports import Metric
from plimsoll.services.retry_policy import SERIES_SHARED, URGENT_WAKE_UPS
from plimsoll.services.trusted_sources import TrustedSources
from tests.support.workload_sets import WiredServices, advised, deployment, handled


@pytest.fixture
def rig():
    return WiredServices()


@pytest.mark.parametrize(
    ("account", "region"), [("111122223333", "eu-west-1"), ("999988887777", "us-east-1")]
)
def test_a_notice_from_another_account_or_region_than_the_clusters_moves_nothing(
    rig, account, region
):
    instance = rig.join("spot", capacity="spot")
    body = json.loads(rig.spot_event(instance)) | {"account": account, "region": region}
    service = replace(rig.notices, sources=TrustedSources(account="111122223333"))
    assert service.receive([json.dumps(body)]) == [None]
    assert not rig.node("spot").unschedulable
    assert rig.telemetry.metrics[Metric.NOTICES_NOT_OURS] == 1
    assert rig.wake_ups.sent == []


def test_a_notice_of_a_drill_moves_nothing_unless_drills_are_accepted(rig):
    instance = rig.join("spot", capacity="spot")
    body = json.dumps(json.loads(rig.spot_event(instance)) | {"source": DRILL_SOURCE})

    handled(rig, body)
    assert not rig.node("spot").unschedulable

    assert replace(rig.notices, sources=TrustedSources(drills=True)).receive([body]) == [None]
    assert rig.node("spot").unschedulable


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


def test_on_advice_a_node_is_recorded_at_once_and_cordoned_when_its_turn_comes(rig):
    instances = [rig.join(f"spot-{n}", capacity="spot") for n in range(3)]
    advised(rig, *instances)

    def cordoned() -> list[bool]:
        return [rig.node(f"spot-{n}").unschedulable for n in range(3)]

    assert cordoned() == [False] * 3
    assert all(rig.node(f"spot-{n}").interruption for n in range(3))

    rig.drains.reconcile("harbor", "the first")
    assert cordoned() == [True, False, False]
    rig.fake_cluster.vanish("spot-0", now=rig.time)
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


@pytest.mark.parametrize("mode", list(Mode))
def test_a_kind_that_the_policy_observes_is_reported_and_writes_nothing(mode):
    rig = WiredServices(mode=mode)
    instance = rig.join("spot", capacity="spot")
    rig.apply(deployment(replicas=1))
    observed = (("rebalance-recommendation", Response.OBSERVE),)
    rig.registry.update(replace(rig.cluster, policy=Policy(on=observed)))
    version = rig.version()

    handled(rig, rig.rebalance_event(instance))
    rig.drains.reconcile("harbor", "me")

    assert rig.node("spot").interruption is None
    assert mode is Mode.ACT or rig.version() == version
    [report] = rig.reports.list("harbor")
    assert (report.kind, report.cordoned) == ("rebalance-recommendation", None)
    assert Metric.NOTICES_IGNORED not in rig.telemetry.metrics


def test_no_cordon_waits_for_the_report_of_a_notice_that_is_only_observed(rig, monkeypatch):
    advice, going = rig.join("advised", capacity="spot"), rig.join("spot", capacity="spot")
    observed = (("rebalance-recommendation", Response.OBSERVE),)
    rig.registry.update(replace(rig.cluster, policy=Policy(on=observed)))

    def unanswered():
        raise Temporary("the API server does not answer a long list")

    monkeypatch.setattr(rig.api, "observe", unanswered)
    bodies = [rig.rebalance_event(advice), rig.spot_event(going)]
    failed, handled_ = rig.notices.receive(bodies)

    assert (type(failed), handled_) == (Temporary, None)
    assert rig.node("spot").unschedulable
    assert [d for _, d in rig.wake_ups.sent] == [*URGENT_WAKE_UPS]


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
        rig.fake_cluster.vanish(f"spot-{n}", now=rig.time)
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


def test_bad_input_names_the_field(rig):
    (bad,) = rig.notices.receive([rig.spot_event("i-not-an-id")])

    assert isinstance(bad, BadInput)
    assert "instance-id" in str(bad)


def test_a_node_with_the_record_of_a_newer_version_is_left_alone(rig):
    record = {"metadata": {"annotations": {INTERRUPTION: '{"v": 2}'}}}
    instance = rig.join("spot", capacity="spot")
    path = "/api/v1/nodes/spot"
    merge = "application/merge-patch+json"
    rig.fake_cluster.handle("PATCH", path, now=rig.time, body=record, content_type=merge)
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


def without_node(rig: WiredServices) -> str:
    """Return an instance that EC2 knows and that never joined its cluster."""
    instance = rig.join("spot", capacity="spot")
    rig.fake_cluster.vanish("spot", now=rig.time)
    rig.sleep(600)
    return instance


@pytest.mark.parametrize(
    ("detail", "completes"),
    [
        ({}, True),
        ({"LifecycleHookName": "theirs"}, False),
        (
            {"LifecycleHookName": "theirs", "NotificationMetadata": "plimsoll.dev/complete: true"},
            True,
        ),
    ],
    ids=["ours by its name", "theirs", "ours by its metadata"],
)
def test_an_instance_without_a_node_waits_for_no_hook_of_ours(rig, detail, completes):
    instance = without_node(rig)
    handled(rig, rig.terminating_event(instance, **detail))
    assert rig.aws.completed == ([instance] if completes else [])


def test_an_instance_with_a_node_waits_for_its_drain(rig):
    handled(rig, rig.terminating_event(rig.join("spot", capacity="spot")))
    assert rig.aws.completed == []
    assert rig.node("spot").unschedulable


def test_no_hook_is_completed_in_a_cluster_that_is_only_observed():
    rig = WiredServices(mode=Mode.OBSERVE)
    handled(rig, rig.terminating_event(without_node(rig)))
    assert rig.aws.completed == []


@pytest.mark.parametrize(
    ("error", "comes_back"),
    [(Throttled("later"), True), (NotFound("it is over"), False), (Refused("no tag"), False)],
)
def test_a_hook_that_could_not_be_completed_comes_back_where_that_can_help(
    rig, monkeypatch, error, comes_back
):
    instance = without_node(rig)

    def fail(*_):
        raise error

    monkeypatch.setattr(rig.aws, "complete_lifecycle", fail)
    [failed] = rig.notices.receive([rig.terminating_event(instance)])
    assert (failed is error) is comes_back
