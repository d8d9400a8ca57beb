"""Who reads too much is told when to come back, and nobody else is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from plimsoll.domain.errors import NotFound, Throttled
from plimsoll_service.domain.access.principals import Principal, Role
from plimsoll_service.domain.gpu import ClassDaySum, gpu_minute_of
from plimsoll_service.domain.snapshots.rollups import Amount, Rollup, Span, rollup_of
from plimsoll_service.domain.snapshots.views import period_of, pool_rows
from plimsoll_service.services.cluster_rows import remember_cluster
from plimsoll_service.services.gpu_history import keep_class_days
from plimsoll_service.services.paging import PageRequest
from plimsoll_service.services.reads import POLLS_PER_MINUTE, Reads
from plimsoll_service.wire.documents import MOST_COUNT, Malformed, decode, encode
from plimsoll_service.wire.snapshot import Amounts, Pod
from plimsoll_service.wire.views import Period, Pool
from plimsoll_simulation.fake_aws.service_stores import MemoryMembers, MemoryTenants
from tests.support.enrolled import KUBE_SYSTEM, Key, agent_of, invitation
from tests.support.snapshots import amounts, wire_node, wire_snapshot

NOW = datetime(2026, 11, 22, 12, 30, 10, tzinfo=UTC)
FEW = 5
FIRST = PageRequest()


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
        reads.clusters(person_of("acme", name), FIRST)
    with pytest.raises(NotFound):  # a guess counts as well
        reads.pools(person_of("acme", "eve"), "a-none")
    with pytest.raises(Throttled) as told:
        reads.clusters(person_of("acme", "eve"), FIRST)
    assert told.value.retry_after == 50
    assert reads.for_executor(agent_of(Key(), now=NOW)) is not None
    assert not reads.clusters(person_of("globex", "eve"), FIRST).clusters
    clock.time += timedelta(minutes=1)
    assert not reads.clusters(person_of("acme", "eve"), FIRST).clusters


def test_an_agent_that_polls_without_end_is_told_when_to_come_back_and_the_others_are_heard():
    clock = Clock()
    reads = Reads(tenants=MemoryTenants(clock), members=MemoryMembers(), clock=clock)
    for _ in range(POLLS_PER_MINUTE):
        reads.for_executor(agent_of(Key(), now=NOW))
    with pytest.raises(Throttled):
        reads.for_executor(agent_of(Key(), now=NOW))
    assert reads.for_executor(agent_of(Key(), name="dock", now=NOW)) is not None


def kept(span: Span, *, days: int) -> Reads:
    """Return the reads of a cluster of which each hour or day of so many days is kept."""
    clock = Clock()
    reads = Reads(tenants=MemoryTenants(clock), members=MemoryMembers(), clock=clock)
    data = reads.tenants.of("acme")
    remember_cluster(data, "shop", "shop", NOW)
    for n in range(days * 24 if span is Span.HOUR else days):
        start = span.start(NOW - (n + 1) * span.length)
        amount = Amount(cpu_m=8000, memory=4096)
        made = Rollup(
            start=start,
            last=start,
            samples=4,
            nodes=10,
            spot_nodes=4,
            pods=40,
            pending=0,
            allocatable=amount,
            requested=amount,
            used=Amount(cpu_m=402),
        )
        expires = start + span.kept
        data.put("shop", span.key(start), msgspec.json.encode(made), expires=expires)
    return reads


def test_hours_are_read_as_means_a_week_at_a_time_back_to_the_last_that_is_kept():
    reads, person = kept(Span.HOUR, days=40), person_of("acme", "ann")
    starts: list[datetime] = []
    before: str | None = None
    for _ in range(7):
        found = reads.periods(person, "shop", Span.HOUR, before)
        assert len(found.periods) <= 7 * 24 + 1
        starts = [each.start for each in found.periods] + starts
        before = found.since.isoformat()
    assert starts == sorted(set(starts))
    assert (starts[-1], starts[0]) == (
        datetime(2026, 11, 22, 11, tzinfo=UTC),
        datetime(2026, 10, 18, 13, tzinfo=UTC),
    )
    [first, *_] = reads.periods(person, "shop", Span.HOUR, None).periods
    assert (first.snapshots, first.nodes, first.spot_nodes, first.pods) == (4, 2.5, 1, 10)
    assert (first.allocatable, first.used.cpu_m) == (Amounts(cpu_m=2000, memory=1024), 100)


def test_sums_beyond_what_a_document_holds_are_read_as_the_most_that_it_holds():
    """An agent may tell any amounts: else whoever reads them gets 500, and an alarm rings."""
    huge = amounts(MOST_COUNT, MOST_COUNT)
    seen = wire_snapshot(nodes=tuple(wire_node(f"n-{n}", allocatable=huge) for n in range(3)))
    [pool], hour = pool_rows(seen), period_of(rollup_of(seen))
    assert decode(encode(pool), Pool).allocatable == huge
    assert decode(encode(hour), Period).allocatable == huge


def test_days_are_read_a_quarter_at_a_time():
    reads, person = kept(Span.DAY, days=200), person_of("acme", "ann")
    found = reads.periods(person, "shop", Span.DAY, "2026-09-01T00:00:00Z")
    assert [each.start.date().isoformat() for each in found.periods][::91] == [
        "2026-06-01",
        "2026-08-31",
    ]
    assert len(found.periods) == 92
    assert reads.periods(person, "shop", Span.DAY, "9999-01-01").periods[-1].start.day == 21


@pytest.mark.parametrize("before", ["0001-01-01T00:00:00+09:00", "yesterday", "x" * 2000, "-1"])
def test_what_is_no_time_is_refused(before: str):
    with pytest.raises(Malformed):
        kept(Span.DAY, days=1).periods(person_of("acme", "ann"), "shop", Span.DAY, before)


def test_of_a_time_before_all_that_is_kept_nothing_is_read():
    reads = kept(Span.DAY, days=1)
    assert reads.periods(person_of("acme", "ann"), "shop", Span.DAY, "0001-01-01").periods == ()


def test_nobody_reads_the_hours_of_another_tenant():
    with pytest.raises(NotFound):
        kept(Span.HOUR, days=1).periods(person_of("globex", "eve"), "shop", Span.HOUR, None)


def test_gpus_are_read_by_their_own_tenant_in_pages_and_days_that_exist():
    clock = Clock()
    tenants = MemoryTenants(clock)
    remember_cluster(tenants.of("acme"), "harbor", "harbor", NOW)
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
