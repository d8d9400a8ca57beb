"""Which events wake the queues of which clusters: notices about their nodes, and Jobs that agents saw change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from plimsoll.domain.errors import PlimsollError, Temporary
from plimsoll.domain.registry import QUEUE_CHANGE_DETAIL_TYPE, Cluster, ClusterKind, IndexEntry
from plimsoll_batch.services.wake_ups import (
    AFTER_CHANGE_SECONDS,
    AFTER_NOTICE_SECONDS,
    SHARED,
    WakeUpService,
)
from tests.support.builders import NOON
from tests.support.queue_scenes import Heard
from tests.support.repeating import VirtualTime

HARBOR = Cluster(name="harbor", kind=ClusterKind.EKS, region="us-east-1", added=NOON, agent="a-1")
PIER = replace(HARBOR, name="pier", agent=None)


def instance(number: int) -> str:
    return f"i-{number:017x}"


def notice(
    number: int, kind: str = "EC2 Spot Instance Interruption Warning", **more: object
) -> str:
    said = {"instance-id": instance(number), "instance-action": "terminate"}
    return event(str(more.get("source", "aws.ec2")), kind, said)


def change(agent: str = "a-1") -> str:
    return event("plimsoll.service", QUEUE_CHANGE_DETAIL_TYPE, {"agent": agent})


def event(source: str, kind: str, detail: Mapping[str, object]) -> str:
    said = {
        "id": "1",
        "source": source,
        "detail-type": kind,
        "account": "111122223333",
        "region": "us-east-1",
        "time": "2026-11-22T12:00:00Z",
        "resources": [],
        "detail": detail,
    }
    return json.dumps(said)


@dataclass
class World:
    """A registry, an index of the nodes 1 and 2 of harbor and 3 of pier, and a queue."""

    sent: list[tuple[str, Sequence[int]]] = field(default_factory=list)
    away: set[str] = field(default_factory=set)
    """What does not answer: the index, or wake-ups of a cluster."""

    def __post_init__(self) -> None:
        self.clock = VirtualTime(NOON)
        self.heard = Heard()
        self.wake_ups = WakeUpService(
            registry=self,  # type: ignore[arg-type] # it is only listed
            index=self,  # type: ignore[arg-type] # it is only read
            wake_ups=self,
            clock=self.clock,
            telemetry=self.heard,
        )

    def list(self) -> Sequence[Cluster]:
        return [HARBOR, PIER]

    def find(self, instances: Sequence[str]) -> Mapping[str, IndexEntry]:
        if "index" in self.away:
            raise Temporary("the table is away")
        names = {instance(1): "harbor", instance(2): "harbor", instance(3): "pier"}
        return {
            i: IndexEntry(instance=i, cluster=names[i], node="n", seen=NOON)
            for i in instances
            if i in names
        }

    def send(self, cluster: str, delays: Sequence[int], traceparent: str | None = None) -> None:
        if cluster in self.away:
            raise Temporary("SQS is away")
        self.sent.append((cluster, delays))

    def receive(self, *bodies: str) -> Sequence[PlimsollError | None]:
        return self.wake_ups.receive(bodies)


def test_a_notice_wakes_the_cluster_of_its_node_and_again_until_the_node_says_it_too():
    world = World()
    assert world.receive(notice(1)) == [None]
    assert world.sent == [("harbor", AFTER_NOTICE_SECONDS)]
    assert AFTER_NOTICE_SECONDS[0] <= 5


def test_a_job_that_changed_wakes_the_cluster_that_is_bound_to_the_agent_and_no_other():
    world = World()
    assert world.receive(change(), change("a-foreign")) == [None, None]
    assert world.sent == [("harbor", AFTER_CHANGE_SECONDS)]


def test_a_storm_of_notices_is_one_series_of_wake_ups_for_each_cluster():
    world = World()
    world.receive(*(notice(number) for number in (1, 2, 3, 1)))
    world.clock.sleep(1)
    world.receive(notice(2))
    assert world.sent == [("harbor", AFTER_NOTICE_SECONDS), ("pier", AFTER_NOTICE_SECONDS)]
    world.clock.sleep(SHARED.total_seconds())
    world.receive(notice(2))
    assert len(world.sent) == 3


def test_a_series_covers_what_it_is_shared_with():
    """What comes last within the shared time still has a wake-up well after it."""
    for series in (AFTER_NOTICE_SECONDS, AFTER_CHANGE_SECONDS):
        assert timedelta(seconds=series[-1]) > SHARED


@pytest.mark.parametrize(
    "body",
    [
        notice(9),
        notice(1, source="plimsoll.drill"),
        "no JSON",
        "[]",
        change("../harbor"),
        event("plimsoll.service", QUEUE_CHANGE_DETAIL_TYPE, {}),
        event("aws.ec2", QUEUE_CHANGE_DETAIL_TYPE, {"agent": "a-1"}),
    ],
    ids=["unknown", "drill", "words", "list", "forged", "nameless", "not the service"],
)
def test_what_is_not_ours_or_cannot_be_read_wakes_nobody_and_does_not_come_back(body):
    world = World()
    assert world.receive(body) == [None]
    assert world.sent == []


def test_where_the_index_is_away_events_come_back_and_wake_once_it_answers():
    world = World(away={"index"})
    [failed, unread] = world.receive(notice(1), "no JSON")
    assert isinstance(failed, Temporary)
    assert unread is None
    world.away = set()
    assert world.receive(notice(1)) == [None]
    assert world.sent == [("harbor", AFTER_NOTICE_SECONDS)]


def test_a_wake_up_that_was_not_taken_comes_back_and_the_other_cluster_is_woken():
    world = World(away={"harbor"})
    [failed, done] = world.receive(notice(1), notice(3))
    assert isinstance(failed, Temporary)
    assert done is None
    assert world.sent == [("pier", AFTER_NOTICE_SECONDS)]
    world.away = set()
    world.receive(notice(1))
    assert world.sent[-1] == ("harbor", AFTER_NOTICE_SECONDS)
