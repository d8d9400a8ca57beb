"""What an agent says of an instance is put to EC2: a lie costs one question, and moves nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from plimsoll.domain.errors import BadInput, Temporary
from plimsoll.domain.notices import SERVICE_SOURCE, TAINT_DETAIL_TYPE, SpotInterruption, StateChange
from plimsoll.domain.notices.taint import MOST_INSTANCES
from plimsoll.domain.registry import Cluster, ClusterKind, IndexEntry, Mode
from plimsoll.domain.reports import Metric
from plimsoll.services.retry_policy import URGENT_WAKE_UPS
from tests.support.workload_sets import WiredServices

AGENT = "a-shop"


@pytest.fixture
def rig() -> WiredServices:
    """The cluster harbor, bound to its agent."""
    rig = WiredServices()
    rig.registry.update(replace(rig.cluster, agent=AGENT))
    return rig


def said(rig: WiredServices, *instances: str, agent: str = AGENT, **detail: Any) -> str:
    return json.dumps(
        {
            "version": "0",
            "id": "said",
            "detail-type": TAINT_DETAIL_TYPE,
            "source": SERVICE_SOURCE,
            "account": "111122223333",
            "time": f"{rig.time:%Y-%m-%dT%H:%M:%SZ}",
            "region": "us-east-1",
            "resources": [],
            "detail": {"agent": agent, "instances": list(instances)} | detail,
        }
    )


def reclaimed(rig: WiredServices, instance: str) -> SpotInterruption:
    """What EC2 says of a spot instance from the moment of its notice."""
    return SpotInterruption(
        instance=instance,
        time=rig.time,
        account="111122223333",
        region="us-east-1",
        id=f"sir-{instance}",
        action="terminate",
    )


def entry(rig: WiredServices, instance: str, node: str) -> IndexEntry:
    return IndexEntry(instance=instance, cluster="harbor", node=node, seen=rig.time)


def because(rig: WiredServices) -> list[object]:
    return [f["because"] for m, f in rig.telemetry.said if m == "interruption taint dropped"]


def test_what_ec2_confirms_cordons_the_node_with_ec2s_deadline_and_wakes_the_drain(rig):
    instance = rig.join("spot", capacity="spot")
    rig.aws.silent = [reclaimed(rig, instance)]
    noticed = rig.time
    rig.sleep(3)
    assert rig.notices.receive([said(rig, instance)]) == [None]
    record = rig.node("spot").interruption
    assert rig.node("spot").unschedulable
    assert record.kind == "spot-interruption"
    assert record.deadline == noticed + timedelta(seconds=118)
    assert [delay for _, delay in rig.wake_ups.sent] == list(URGENT_WAKE_UPS)


def test_a_lie_costs_one_question_and_moves_nothing(rig):
    instances = [rig.join(f"spot-{n}", capacity="spot") for n in range(5)]
    before = rig.version()
    assert rig.notices.receive([said(rig, *instances), said(rig, *instances)]) == [None, None]
    assert rig.version() == before
    assert rig.wake_ups.sent == []
    assert rig.aws.questions == [sorted(instances)]
    assert set(because(rig)) == {"EC2 does not say that the instance ends"}


def test_an_agent_is_heard_about_its_own_cluster_only(rig):
    """EC2 takes the instance back, and the agent of another cluster says so: it is asked nothing."""
    rig.registry.add(replace(rig.cluster, name="other", agent="a-other"))
    instance = rig.join("spot", capacity="spot")
    rig.aws.silent = [reclaimed(rig, instance)]
    assert rig.notices.receive([said(rig, instance, agent="a-other")]) == [None]
    assert not rig.node("spot").unschedulable
    assert rig.aws.questions == []
    assert because(rig) == ["harbor is not bound to that agent"]
    assert rig.telemetry.metrics[Metric.NOTICES_NOT_OURS] == 1


def test_a_cluster_that_is_bound_to_no_agent_hears_none():
    rig = WiredServices()
    instance = rig.join("spot", capacity="spot")
    rig.aws.silent = [reclaimed(rig, instance)]
    assert rig.notices.receive([said(rig, instance, agent="none")]) == [None]
    assert not rig.node("spot").unschedulable
    assert because(rig) == ["no cluster is bound to that agent"]
    assert rig.aws.described == []


def test_an_instance_of_nobody_is_dropped(rig):
    assert rig.notices.receive([said(rig, "i-0123456789abcdef0")]) == [None]
    assert rig.aws.questions == []
    assert rig.wake_ups.sent == []


def test_an_instance_that_was_reborn_is_not_interrupted_by_what_was_said_of_its_former_life(rig):
    instance = rig.join("spot", capacity="spot")
    old = replace(reclaimed(rig, instance), time=rig.time - timedelta(hours=1))
    known = rig.aws.known[instance]
    rig.aws.known[instance] = replace(known, launched=rig.time - timedelta(minutes=1))
    rig.aws.silent = [old]
    assert rig.notices.receive([said(rig, instance)]) == [None]
    assert not rig.node("spot").unschedulable


def test_an_instance_that_is_gone_is_recorded_as_gone(rig):
    instance = rig.join("spot", capacity="spot")
    rig.aws.silent = [
        StateChange(
            instance=instance,
            time=rig.time,
            account="111122223333",
            region="us-east-1",
            id="now",
            state="terminated",
        )
    ]
    assert rig.notices.receive([said(rig, instance)]) == [None]
    assert rig.node("spot").interruption.gone == rig.time


def test_the_event_of_aws_and_what_an_agent_says_lead_to_one_interruption(rig):
    instance = rig.join("spot", capacity="spot")
    rig.aws.silent = [reclaimed(rig, instance)]
    assert rig.notices.receive([rig.spot_event(instance), said(rig, instance)]) == [None, None]
    record = rig.node("spot").interruption
    assert {notice.kind for notice in record.notices} == {"spot-interruption"}
    version = rig.node("spot").resource_version
    assert rig.notices.receive([said(rig, instance), rig.spot_event(instance)]) == [None, None]
    assert rig.node("spot").resource_version == version


def test_where_ec2_does_not_answer_only_what_agents_said_comes_back(rig):
    told, other = (rig.join(name, capacity="spot") for name in ("told", "other"))

    rig.index.put([entry(rig, told, "told"), entry(rig, other, "other")])
    rig.aws.fails = Temporary("EC2 does not answer")
    answers = rig.notices.receive([said(rig, told), rig.spot_event(other), "no event"])
    assert [type(answer) for answer in answers] == [Temporary, type(None), BadInput]
    assert rig.node("other").unschedulable
    assert not rig.node("told").unschedulable


@pytest.mark.parametrize(
    "detail",
    [
        {"instances": []},
        {"instances": [f"i-{n:017x}" for n in range(MOST_INSTANCES + 1)]},
        {"instances": ["i-0123456789abcdef0", "../clusters"]},
        {"instances": "i-0123456789abcdef0"},
        {"agent": "a" * 65},
        {"agent": ""},
        {"agent": None},
    ],
)
def test_what_no_agent_of_ours_says_is_refused_and_rings_no_alarm(rig, detail):
    """Whoever may put events can put it: it neither comes back nor is set aside."""
    assert rig.notices.receive([said(rig, "i-0123456789abcdef0", **detail)]) == [None]
    assert rig.telemetry.metrics[Metric.NOTICES_IGNORED] == 1
    assert rig.telemetry.warned == ["notice refused"]
    assert rig.aws.described == []


def test_in_a_cluster_that_is_only_observed_nothing_is_written(rig):
    rig.registry.update(
        Cluster(
            name="harbor",
            kind=ClusterKind.EKS,
            mode=Mode.OBSERVE,
            region="us-east-1",
            agent=AGENT,
            added=rig.time,
        )
    )
    instance = rig.join("spot", capacity="spot")
    rig.aws.silent = [reclaimed(rig, instance)]
    before = rig.version()
    assert rig.notices.receive([said(rig, instance)]) == [None]
    assert rig.version() == before
