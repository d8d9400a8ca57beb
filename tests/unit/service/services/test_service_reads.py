"""Who reads too much is told when to come back, and nobody else is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from plimsoll.domain.errors import NotFound, Throttled
from plimsoll_service.domain.access.principals import Principal, Role
from plimsoll_service.services.reads import POLLS_PER_MINUTE, Reads
from plimsoll_simulation.fake_aws.service_stores import MemoryMembers, MemoryTenants
from tests.support.enrolled import KUBE_SYSTEM, Key, agent_of, invitation

NOW = datetime(2026, 11, 22, 12, 30, 10, tzinfo=UTC)
FEW = 5


class Clock:
    time = NOW

    def now(self) -> datetime:
        return self.time


def person_of(tenant: str, name: str) -> Principal:
    invited = invitation(tenant, name, role=Role.PERSON, now=NOW)
    return Principal.admitted(invited, Key().public, KUBE_SYSTEM)


def test_of_a_tenant_whose_people_read_too_much_agents_and_neighbours_are_still_heard():
    clock = Clock()
    reads = Reads(
        tenants=MemoryTenants(clock), members=MemoryMembers(), clock=clock, reads_per_minute=FEW
    )
    for name in ("ann", "ben", "cleo", "dan"):
        reads.clusters(person_of("acme", name))
    with pytest.raises(NotFound):  # a guess counts as well
        reads.pools(person_of("acme", "eve"), "a-none")
    with pytest.raises(Throttled) as told:
        reads.clusters(person_of("acme", "eve"))
    assert told.value.retry_after == 50
    assert reads.for_executor(agent_of(Key(), now=NOW)) is not None
    assert not reads.clusters(person_of("globex", "eve")).clusters
    clock.time += timedelta(minutes=1)
    assert not reads.clusters(person_of("acme", "eve")).clusters


def test_an_agent_that_polls_without_end_is_told_when_to_come_back_and_the_others_are_heard():
    clock = Clock()
    reads = Reads(tenants=MemoryTenants(clock), members=MemoryMembers(), clock=clock)
    for _ in range(POLLS_PER_MINUTE):
        reads.for_executor(agent_of(Key(), now=NOW))
    with pytest.raises(Throttled):
        reads.for_executor(agent_of(Key(), now=NOW))
    assert reads.for_executor(agent_of(Key(), name="dock", now=NOW)) is not None
