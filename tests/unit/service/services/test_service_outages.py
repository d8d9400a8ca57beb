"""Each part that the service depends on is away for minutes: nothing acknowledged is lost, and reads say their age.

In virtual time: the agent's own telling and spool, the service's own use cases, and memory in the place of
the queue, the table and the bucket, each of which stops answering.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from plimsoll.domain.errors import Temporary
from plimsoll_agent.cluster_reader import Seen
from plimsoll_agent.snapshot_sender import SnapshotSender
from plimsoll_agent.spool import Spool
from plimsoll_service.domain.access.principals import Principal, Role
from plimsoll_service.domain.advice.advice_requests import AdviceRequest
from plimsoll_service.domain.snapshots.arrivals import Arrival
from plimsoll_service.domain.snapshots.rollups import Span
from plimsoll_service.services.advice_runs import AdviceSchedule, AdviceService
from plimsoll_service.services.cluster_rows import remember_cluster
from plimsoll_service.services.history import newest, rollups
from plimsoll_service.services.ingest import IngestService, Intake
from plimsoll_service.services.kept_advice import SAVINGS
from plimsoll_service.services.ports import TenantData
from plimsoll_service.services.reads import Reads
from plimsoll_service.wire.access import Accepted
from plimsoll_service.wire.advice import Advice
from plimsoll_service.wire.documents import decode
from plimsoll_service.wire.snapshot import AgentState
from plimsoll_service.wire.snapshot import decode as decode_snapshot
from plimsoll_simulation.fake_aws.service_stores import MemoryMembers, MemoryTenants
from tests.support.advised import SIGNER, prices
from tests.support.cli_environment import StillClock
from tests.support.enrolled import Key, admitted, invitation
from tests.support.snapshots import wire_node, wire_pods, wire_workload
from tests.support.total_queue import TotalQueue
from tests.unit.agent.test_snapshot_sender import EMPTY, Counted

MINUTE = timedelta(minutes=1)
TABLE = {"get", "put", "list", "delete", "audit"}
BUCKET = {"put_snapshot", "get_snapshot", "has_snapshot"}
WEB = wire_workload("web", replicas=4)
SEEN = replace(EMPTY, nodes=[wire_node("a"), wire_node("b")], pods=wire_pods(WEB, *"aabb"))
PARTS = ("queue", "table", "bucket", "API", "cluster")


@dataclass
class AwayData:
    inner: Any
    away: set[str]

    def __getattr__(self, name: str) -> Any:
        part = "table" if name in TABLE else "bucket"
        if part in self.away:
            raise Temporary(f"the {part} does not answer")
        return getattr(self.inner, name)


@dataclass
class World:
    """A cluster with its agent, and the service; what is in `away` does not answer."""

    spool: Path
    clock: StillClock = field(default_factory=StillClock)
    away: set[str] = field(default_factory=set)
    arrivals: list[Arrival] = field(default_factory=list)
    requests: list[AdviceRequest] = field(default_factory=list)
    acknowledged: set[datetime] = field(default_factory=set)
    send_at: datetime | None = None

    def __post_init__(self) -> None:
        self.start = self.clock.now()
        self.memory = MemoryTenants(self.clock)
        self.members = MemoryMembers()
        self.agent, self.person = (
            Principal.admitted(
                invitation(name=role, role=role, now=self.start), Key().public, "uid"
            )
            for role in (Role.AGENT, Role.PERSON)
        )
        admitted(self.members, Key(), invitation(name=Role.AGENT, now=self.start), "uid")
        remember_cluster(self.memory.of("acme"), self.agent.subject, "shop", self.clock.now())
        self.intake = Intake(
            tenants=self,
            members=self.members,
            queue=self,
            clock=self.clock,
        )
        self.ingest = IngestService(tenants=self, advice=Asking(self), clock=self.clock)
        self.schedule = AdviceSchedule(members=self.members, queue=Asking(self), clock=self.clock)
        self.advice = AdviceService(
            tenants=self, prices=prices, signer=lambda: SIGNER, clock=self.clock
        )
        self.reads = Reads(tenants=self, members=self.members, clock=self.clock)
        self.sender = SnapshotSender(
            cluster_id=self.agent.subject,
            follow=lambda: None,
            read=self._read,
            about=AgentState,
            push=self._push,
            spool=Spool(self.spool, 2**20),
            clock=self.clock,
            measures=Counted(),
            warn=lambda _: None,
        )

    def of(self, tenant: str) -> Any:
        return AwayData(self.memory.of(tenant), self.away)

    def send(self, arrival: Arrival) -> None:
        if "queue" in self.away:
            raise Temporary("the queue does not answer")
        self.arrivals.append(arrival)

    def _read(self) -> Seen:
        if "cluster" in self.away:
            raise Temporary("the API server of the cluster does not answer")
        return SEEN

    def _push(self, body: bytes) -> Accepted:
        if "API" in self.away:
            raise Temporary("API Gateway answers 503")
        answer = self.intake.take(self.agent, body)
        self.acknowledged.add(Span.MINUTE.start(decode_snapshot(body).taken_at))
        return answer

    def pass_minutes(self, minutes: int) -> None:
        """The agent tells when it is time, workers work, and the schedule asks every five minutes."""
        for _ in range(minutes):
            now = self.clock.now()
            self.sender.take()
            if self.send_at is None or now >= self.send_at:
                pause = self.sender.send()
                self.send_at = now + timedelta(seconds=pause) if self.waiting else None
            if now.minute % 5 == 0:
                with suppress(Temporary):
                    self.schedule.run()
            self.arrivals = list(self._failed(self.arrivals, self.ingest.work))
            self.requests = list(self._failed(self.requests, self.advice.answer))
            self.clock.time += MINUTE

    def _failed(self, messages: list[Any], work: Any) -> Iterator[Any]:
        """Work messages off, if they can be had, and yield those that come back."""
        for message in messages:
            if "queue" in self.away:
                yield message
                continue
            try:
                work(message)
            except Temporary:
                yield message

    @property
    def waiting(self) -> int:
        return len(self.sender.spool.entries)

    def age(self) -> int:
        return self.reads.pools(self.person, self.agent.subject).age_s

    def report(self) -> TotalQueue[datetime]:
        data, end = self.memory.of("acme"), self.clock.now()
        found = rollups(data, self.agent.subject, Span.MINUTE, self.start, end)
        passed = round((end - self.start) / MINUTE)
        attempted = {self.start + n * MINUTE for n in range(passed)}
        return TotalQueue(attempted, self.acknowledged, {each.start for each in found})


@dataclass
class Asking:
    world: World

    def send(self, requests: Any) -> None:
        if "queue" in self.world.away:
            raise Temporary("the queue does not answer")
        self.world.requests += requests


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path / "spool")
    made.pass_minutes(7)
    return made


def test_all_that_the_data_of_a_tenant_are_asked_for_can_be_away():
    asked = {name for name in vars(TenantData) if not name.startswith("_")} - {"fault"}
    assert asked == TABLE | BUCKET


@pytest.mark.parametrize("part", PARTS)
def test_away_for_five_minutes_it_costs_nothing_that_was_acknowledged(world: World, part: str):
    world.away.add(part)
    world.pass_minutes(5)
    missed = {world.start + n * MINUTE for n in range(7, 12)} if part == "cluster" else set()
    world.away.clear()
    world.pass_minutes(8)  # the agent's longest pause is five minutes
    report = world.report()
    sys.stdout.write(f"{part} away for five minutes: {report}\n")
    assert not report.lost
    assert report.found == report.attempted - missed, "and nothing that the cluster told"
    assert not world.waiting
    data, cluster = world.memory.of("acme"), world.agent.subject
    known, said = newest(data, cluster), data.get(cluster, SAVINGS)
    assert known is not None
    assert said is not None
    assert known.snapshot.sequence == world.sender.sequence
    assert world.clock.now() - decode(said.body, Advice).taken_at <= 6 * MINUTE


@pytest.mark.parametrize("part", PARTS)
def test_meanwhile_reads_say_how_old_they_are_or_that_they_cannot_be_had(world: World, part: str):
    assert world.age() == 60
    world.away.add(part)
    world.pass_minutes(5)
    if part in {"table", "bucket"}:
        with pytest.raises(Temporary):
            world.age()
    else:
        assert world.age() == 6 * 60


def test_an_hour_without_the_service_waits_in_the_spool_and_leaves_no_gap(world: World):
    world.away.add("API")
    world.pass_minutes(60)
    assert world.waiting == 60
    world.away.clear()
    world.pass_minutes(8)
    assert not world.waiting
    assert world.report().found == world.report().attempted
