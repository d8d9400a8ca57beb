"""What an agent saw goes on to the interruption path at once, under its own name, and not too often."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from plimsoll.domain.errors import Temporary, Throttled
from plimsoll.domain.notices import SERVICE_SOURCE, TAINT_DETAIL_TYPE, InterruptionTaint, parse
from plimsoll_service.services.taints import (
    CHANGES_PER_MINUTE,
    REQUESTS_PER_MINUTE,
    TaintForwarding,
)
from plimsoll_service.wire.documents import Malformed, decode, encode
from plimsoll_service.wire.taints import MOST_INSTANCES, TaintedInstances
from plimsoll_simulation.fake_aws.service_stores import MemoryMembers
from tests.support.enrolled import Key, agent_of

NOW = datetime(2026, 11, 22, 12, 30, 10, tzinfo=UTC)
SHOP = agent_of(Key(), now=NOW)
DOCK = agent_of(Key(2), name="dock", now=NOW)
SEEN = ("i-0123456789abcdef0",)
SAID = encode(TaintedInstances(instances=SEEN))


@dataclass
class Rig:
    time: datetime = NOW
    put: list[tuple[str, Sequence[str]]] = field(default_factory=list)
    deaf: bool = False

    def __post_init__(self) -> None:
        self.forwarding = TaintForwarding(members=MemoryMembers(), bus=self, clock=self)

    def now(self) -> datetime:
        return self.time

    def forward(self, agent: str, instances: Sequence[str]) -> None:
        if self.deaf:
            raise Temporary("the bus does not answer")
        self.put.append((agent, instances))

    def queue_changed(self, agent: str) -> None:
        self.forward(agent, ())


def test_it_goes_on_under_the_name_of_the_agent_that_asked():
    rig = Rig()
    assert rig.forwarding.forward(SHOP, SAID).forwarded == 1
    assert rig.put == [(SHOP.subject, SEEN)]


def test_who_says_too_much_is_told_when_to_come_back_and_the_neighbour_is_heard():
    rig = Rig()
    for _ in range(REQUESTS_PER_MINUTE):
        rig.forwarding.forward(SHOP, SAID)
    with pytest.raises(Throttled) as told:
        rig.forwarding.forward(SHOP, SAID)
    assert told.value.retry_after == 50
    assert len(rig.put) == REQUESTS_PER_MINUTE
    rig.forwarding.forward(DOCK, SAID)
    rig.time += timedelta(minutes=1)
    rig.forwarding.forward(SHOP, SAID)
    assert [agent for agent, _ in rig.put[-2:]] == [DOCK.subject, SHOP.subject]


def test_a_change_of_a_queue_names_the_agent_alone_and_has_a_limit_of_its_own():
    rig = Rig()
    rig.forwarding.forward(SHOP, SAID)
    for _ in range(CHANGES_PER_MINUTE):
        assert rig.forwarding.queue_changed(SHOP).forwarded == 1
    with pytest.raises(Throttled):
        rig.forwarding.queue_changed(SHOP)
    rig.forwarding.forward(SHOP, SAID)
    rig.forwarding.queue_changed(DOCK)
    assert rig.put[-1] == (DOCK.subject, ())


def test_what_the_bus_did_not_take_was_not_forwarded():
    with pytest.raises(Temporary):
        Rig(deaf=True).forwarding.forward(SHOP, SAID)


@pytest.mark.parametrize(
    "instances",
    [
        (),
        ("i-1",),
        ("../i-0123456789abcdef0",),
        ("i-0123456789abcdef0\n",),
        tuple(f"i-{n:017x}" for n in range(MOST_INSTANCES + 1)),
    ],
)
def test_what_names_no_instances_is_refused(instances):
    with pytest.raises(Malformed):
        decode(msgspec.json.encode(TaintedInstances(instances=instances)), TaintedInstances)


def test_the_interruption_path_takes_the_largest_request_that_the_service_takes():
    named = tuple(f"i-{n:017x}" for n in range(MOST_INSTANCES))
    decode(encode(TaintedInstances(instances=named)), TaintedInstances)
    event = {
        "id": "1",
        "source": SERVICE_SOURCE,
        "detail-type": TAINT_DETAIL_TYPE,
        "account": "111122223333",
        "region": "us-east-1",
        "time": "2026-11-22T12:30:10Z",
        "detail": {"agent": SHOP.subject, "instances": list(named)},
    }
    notices = parse(json.dumps(event), received=NOW)
    assert [n.instance for n in notices if isinstance(n, InterruptionTaint)] == list(named)
