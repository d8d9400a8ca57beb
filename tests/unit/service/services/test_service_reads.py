"""Who reads too much is told when to come back, and nobody else is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from plimsoll.domain.errors import NotFound, Throttled
from plimsoll_service.domain.access.principals import Principal, Role
from plimsoll_service.domain.gpu import ClassDaySum, gpu_minute_of
from plimsoll_service.services.gpu_history import keep_class_days
from plimsoll_service.services.history import remember_cluster
from plimsoll_service.services.reads import POLLS_PER_MINUTE, Reads
from plimsoll_service.wire.documents import Malformed
from plimsoll_service.wire.snapshot import Pod
from plimsoll_simulation.fake_aws.service_stores import MemoryMembers, MemoryTenants
from tests.support.enrolled import KUBE_SYSTEM, Key, agent_of, invitation
from tests.support.snapshots import wire_node, wire_snapshot

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


def test_gpus_are_read_by_their_own_tenant_in_pages_and_days_that_exist():
    clock = Clock()
    tenants = MemoryTenants(clock)
    remember_cluster(tenants.of("acme"), "harbor", "harbor")
    found = ClassDaySum()
    pod = Pod(
        uid="p", namespace="ml", name="p", node="a", gpus={"nvidia.com/gpu": 1}, created_at=NOW
    )
    minute = gpu_minute_of(wire_snapshot(nodes=(wire_node("a"),), pods=(pod,)))
    assert minute is not None
    found.add(NOW, minute)
    keep_class_days(tenants.of("acme"), "harbor", found)
    reads = Reads(tenants=tenants, members=MemoryMembers(), clock=clock)
    ann, eve = person_of("acme", "ann"), person_of("globex", "eve")
    (day,) = reads.gpu(ann, "harbor", "1", "").days
    assert (day.day, day.of.owner) == (NOW.date(), "p")
    clock.time += timedelta(days=1)
    assert not reads.gpu(ann, "harbor", "1", "").days
    assert reads.gpu(ann, "harbor", "35", "").days
    with pytest.raises(NotFound):
        reads.gpu(eve, "harbor", "7", "")
    for days, after in (("0", ""), ("36", ""), ("x", ""), ("", ""), ("9" * 99, ""), ("7", "~")):
        with pytest.raises(Malformed):
            reads.gpu(ann, "harbor", days, after)
    clock.time += timedelta(days=36)
    assert not reads.gpu(ann, "harbor", "35", "").days
