"""What is acknowledged is kept, counted once, and the newest snapshot wins: whatever the order."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from random import Random
from typing import Any

import msgspec
import pytest
from msgspec import structs

from plimsoll.domain.errors import BadInput, Conflict, Discardable, Temporary, Throttled
from plimsoll_service.domain.access.principals import Principal
from plimsoll_service.domain.advice.advice_requests import (
    AdviceRequest,
    LastAdvice,
    configuration_of,
)
from plimsoll_service.domain.errors import Forbidden, TooLarge
from plimsoll_service.domain.snapshots.arrivals import PAST_EPOCHS, Arrival, Newest, newest_after
from plimsoll_service.domain.snapshots.rollups import Span
from plimsoll_service.services import gpu_history
from plimsoll_service.services.gpu_history import class_days
from plimsoll_service.services.history import ADVISED, last_advice, newest, rollups, usage
from plimsoll_service.services.ingest import MOST_COMPRESSED_BYTES, IngestService, Intake
from plimsoll_service.wire.documents import Malformed
from plimsoll_service.wire.gpu import GpuSample
from plimsoll_service.wire.snapshot import Snapshot, Usage, Workload, delta, encode
from plimsoll_simulation.fake_aws.service_stores import (
    MemoryAdviceQueue,
    MemoryMembers,
    MemoryQueue,
    MemoryTenantData,
    MemoryTenants,
)
from tests.support.enrolled import Key, agent_of
from tests.support.snapshots import wire_node, wire_pods, wire_workload
from tests.support.total_queue import TotalQueue

NOW = datetime(2026, 11, 22, 12, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
AGENT = agent_of(Key(), now=NOW)
SHOP = AGENT.subject
EPOCHS = ("aaaa-1", "bbbb-2", "cccc-3")


@dataclass
class Clock:
    time: datetime = NOW

    def now(self) -> datetime:
        return self.time


@dataclass
class Rig:
    clock: Clock = field(default_factory=Clock)
    queue: MemoryQueue = field(default_factory=MemoryQueue)
    per_minute: int = 1000

    def __post_init__(self) -> None:
        self.tenants = MemoryTenants(self.clock)
        self.advice = MemoryAdviceQueue()
        self.service = IngestService(tenants=self.tenants, advice=self.advice, clock=self.clock)
        self.intake = Intake(
            tenants=self.tenants,
            members=MemoryMembers(),
            queue=self.queue,
            clock=self.clock,
            snapshots_per_minute=self.per_minute,
        )

    @property
    def data(self) -> MemoryTenantData:
        return self.tenants.of(AGENT.tenant)

    def push(self, snapshot: Snapshot, agent: Principal = AGENT) -> Any:
        return self.intake.take(agent, encode(snapshot))

    def over(self, tenants: Any) -> IngestService:
        return replace(self.service, tenants=tenants)

    def work_off(self) -> None:
        """Work each snapshot off when it came."""
        while self.queue.sent:
            arrival = self.queue.sent.pop(0)
            self.clock.time = arrival.received_at
            self.service.work(arrival)


def a_snapshot(
    sequence: int = 1, *, at: datetime = NOW, epoch: str = EPOCHS[0], nodes: int = 1
) -> Snapshot:
    web = wire_workload("web", replicas=2)
    return Snapshot(
        cluster_id=SHOP,
        epoch=epoch,
        sequence=sequence,
        taken_at=at,
        kubernetes="v1.36.3",
        nodes=tuple(wire_node(f"n-{i}") for i in range(nodes)),
        workloads=(web,),
        pods=wire_pods(web, "n-0", "n-0"),
    )


def arrival(sequence: int, *, epoch: str = EPOCHS[0], received_at: datetime = NOW) -> Arrival:
    return Arrival(
        tenant="acme",
        cluster=SHOP,
        epoch=epoch,
        sequence=sequence,
        base=0,
        received_at=received_at,
        digest="",
    )


def after(*arrivals: Arrival) -> Newest | None:
    known = None
    for each in arrivals:
        known = newest_after(known, each, each.received_at) or known
    return known


SEEDS = [0, 1, 2, 3, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(4, 20))]


# --- Which one is the newest -------------------------------------------------------------------------


def test_the_newest_wins_in_whatever_order_snapshots_come():
    """Three epochs, two of each, every order of six messages."""
    sent = [
        arrival(sequence, epoch=epoch, received_at=NOW + (2 * i + sequence) * MINUTE)
        for i, epoch in enumerate(EPOCHS)
        for sequence in (1, 2)
    ]
    for order in permutations(sent):
        found = after(*order)
        assert found is not None
        assert (found.epoch, found.sequence) == (EPOCHS[2], 2)


def test_a_snapshot_that_is_replayed_from_a_past_epoch_changes_nothing():
    one, two = arrival(1), arrival(1, epoch=EPOCHS[1], received_at=NOW + MINUTE)
    replayed = replace(one, sequence=9, received_at=NOW + 9 * MINUTE)
    assert after(one, two, replayed) == after(one, two)


def test_only_so_many_past_epochs_are_remembered():
    sent = [arrival(1, epoch=f"e-{i}", received_at=NOW + i * MINUTE) for i in range(50)]
    found = after(*sent)
    assert found is not None
    assert len(found.past) == PAST_EPOCHS
    assert found.past[-1] == "e-48"


# --- Taking in ---------------------------------------------------------------------------------------


def test_what_is_acknowledged_is_in_the_bucket_and_in_the_queue():
    rig = Rig()
    answer = rig.push(a_snapshot(7))
    assert (answer.accepted, answer.resync, answer.instructions_pending) == (7, False, False)
    assert rig.data.has_snapshot(SHOP, EPOCHS[0], 7)
    assert [(a.epoch, a.sequence) for a in rig.queue.sent] == [(EPOCHS[0], 7)]


def test_a_delta_without_its_base_asks_for_a_full_snapshot():
    rig, base = Rig(), a_snapshot(1)
    change = delta(base, a_snapshot(2, at=NOW + MINUTE, nodes=2))
    assert rig.push(change).resync
    rig.push(base)
    assert not rig.push(change).resync


def test_what_the_queue_does_not_take_is_not_acknowledged():
    class Closed(MemoryQueue):
        def send(self, arrival: Arrival) -> None:
            raise Temporary(f"no room for {arrival.sequence}")

    with pytest.raises(Temporary):
        Rig(queue=Closed()).push(a_snapshot())


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", Malformed),
        (b"not gzip", Malformed),
        (encode(a_snapshot())[:-9], Malformed),
        (encode(msgspec.structs.replace(a_snapshot(), epoch="../x")), Malformed),
        (
            encode(msgspec.structs.replace(a_snapshot(), taken_at=NOW + timedelta(hours=3))),
            Malformed,
        ),
        (
            encode(msgspec.structs.replace(a_snapshot(), taken_at=NOW - timedelta(days=3))),
            Malformed,
        ),
        (encode(msgspec.structs.replace(a_snapshot(), cluster_id="other")), Forbidden),
        (bytes(MOST_COMPRESSED_BYTES + 1), TooLarge),
    ],
    ids=[
        "empty",
        "no gzip",
        "cut off",
        "an epoch that climbs",
        "hours ahead",
        "days old",
        "another cluster",
        "too large",
    ],
)
def test_what_is_no_snapshot_of_this_cluster_is_refused_and_not_kept(body, error):
    rig = Rig()
    with pytest.raises(error):
        rig.intake.take(AGENT, body)
    assert not rig.queue.sent


def test_an_agent_that_sends_too_many_is_told_when_to_come_back_and_its_neighbours_are_heard():
    rig = Rig(per_minute=3)
    for sequence in (1, 2, 3):
        rig.push(a_snapshot(sequence))
    rig.clock.time = NOW + timedelta(seconds=20)
    with pytest.raises(Throttled) as told:
        rig.push(a_snapshot(4))
    assert told.value.retry_after == 40
    dock = agent_of(Key(), name="dock", now=NOW)
    assert rig.push(structs.replace(a_snapshot(1), cluster_id=dock.subject), dock).accepted == 1
    rig.clock.time = NOW + MINUTE
    assert rig.push(a_snapshot(4)).accepted == 4


# --- Working off -------------------------------------------------------------------------------------


def test_the_newest_snapshot_is_read_whole():
    rig, base = Rig(), a_snapshot(1)
    later = a_snapshot(2, at=NOW + MINUTE, nodes=3)
    rig.push(base)
    rig.push(delta(base, later))
    rig.work_off()
    found = newest(rig.data, SHOP)
    assert found is not None
    assert found.snapshot == later


def test_a_delta_that_is_worked_off_before_its_base_stands():
    rig, base = Rig(), a_snapshot(1)
    rig.push(base)
    rig.push(delta(base, a_snapshot(2, at=NOW + MINUTE, nodes=3)))
    rig.queue.sent.reverse()
    rig.work_off()
    found = newest(rig.data, SHOP)
    assert found is not None
    assert (found.snapshot.sequence, len(found.snapshot.nodes)) == (2, 3)


def test_a_delta_whose_base_never_came_is_discarded_and_not_tried_for_ever():
    rig, base = Rig(), a_snapshot(1)
    rig.push(delta(base, a_snapshot(2, at=NOW + MINUTE)))
    with pytest.raises(Discardable, match="base 1 never came"):
        rig.work_off()


def test_a_snapshot_that_was_changed_in_the_bucket_is_not_believed():
    rig = Rig()
    rig.push(a_snapshot(1))
    rig.data._snapshots[SHOP, EPOCHS[0], 1] = encode(a_snapshot(1, nodes=9))
    with pytest.raises(BadInput, match="not what was acknowledged") as found:
        rig.work_off()
    assert not isinstance(found.value, Discardable), "it was not its agent: a person has to look"


def test_another_snapshot_of_the_same_number_is_refused_and_the_first_one_counts():
    """Else an agent spoils what was acknowledged by two requests, and a person is paged."""
    rig = Rig()
    rig.push(a_snapshot(1))
    with pytest.raises(Malformed, match="sent as 1 before"):
        rig.push(a_snapshot(1, nodes=9))
    assert rig.push(a_snapshot(1)).accepted == 1
    rig.work_off()
    known = newest(rig.data, SHOP)
    assert known is not None
    assert len(known.snapshot.nodes) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_hours_and_days_hold_each_minute_once_however_messages_come(seed):
    """Three hours over midnight, a snapshot each minute; doubled, shuffled, workers that die."""
    random, rig = Random(seed), Rig()
    start = datetime(2026, 11, 22, 22, 30, tzinfo=UTC)
    for i in range(180):
        rig.clock.time = start + i * MINUTE
        rig.push(a_snapshot(i + 1, at=rig.clock.time, nodes=1 + i % 3))
    sent = rig.queue.sent + random.sample(rig.queue.sent, 60)
    # as SQS does it: mostly in order, some far behind
    order = sorted(range(len(sent)), key=lambda i: sent[i].sequence + random.uniform(-40, 40))
    for i in order:
        if random.random() < 0.2:
            with suppress(KilledError):
                rig.over(Dying(rig.tenants, random.randrange(4))).work(sent[i])
        rig.service.work(sent[i])
    end = start + 180 * MINUTE
    for i in range(60):  # the next hour begins; its messages close the one before
        rig.clock.time = end + i * MINUTE
        rig.push(a_snapshot(181 + i, at=rig.clock.time))
    rig.queue.sent = rig.queue.sent[180:]
    rig.work_off()
    hours = list(rollups(rig.data, SHOP, Span.HOUR, start, end))
    assert [(f"{h.start:%H}", h.samples) for h in hours] == [
        ("22", 30),
        ("23", 60),
        ("00", 60),
        ("01", 60),
    ]
    assert [h.nodes for h in hours] == [60, 120, 120, 90]
    [day] = rollups(rig.data, SHOP, Span.DAY, start, start)
    assert day.samples == 90


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_that_was_acknowledged_is_lost_whoever_dies(seed):
    """Total queue: throttled and lost writes, killed workers, doubled and reordered messages."""
    random, rig = Random(seed), Rig()
    faulty = Faulty(rig.tenants, random)
    intake, service = replace(rig.intake, tenants=faulty), rig.over(faulty)
    attempted: set[int] = set()
    acknowledged: set[int] = set()
    for sequence in range(1, 121):
        rig.clock.time = NOW + sequence * MINUTE
        attempted.add(sequence)
        with suppress(KilledError, Temporary):
            intake.take(AGENT, encode(a_snapshot(sequence, at=rig.clock.time)))
            acknowledged.add(sequence)
    waiting = list(rig.queue.sent)
    delivered = 0
    while waiting:
        delivered += 1
        assert delivered < 5000, "the queue is never worked off"
        message = waiting[random.randrange(min(len(waiting), 30))]
        with suppress(KilledError, Temporary):
            service.work(message)
            if random.random() < 0.9:  # else SQS delivers it once more
                waiting.remove(message)
    minutes = rollups(rig.data, SHOP, Span.MINUTE, NOW, NOW + 121 * MINUTE)
    found = {round((minute.start - NOW) / MINUTE) for minute in minutes}
    report = TotalQueue(attempted, acknowledged, found)
    sys.stdout.write(f"seed {seed}: {report}; {delivered} deliveries\n")
    assert not report.lost
    assert not report.unexpected
    known = newest(rig.data, SHOP)
    assert known is not None
    assert known.snapshot.sequence == max(found)
    assert len(acknowledged) > 60


def with_gpus(sequence: int, at: datetime, duty: int) -> Snapshot:
    """A snapshot in which one of two pods has a GPU."""
    found = a_snapshot(sequence, at=at)
    first, second = found.pods
    pods = (structs.replace(first, gpus={"nvidia.com/gpu": 1}), second)
    sample = GpuSample(node="n-0", gpu="GPU-0", model="H200", pod=first.uid, duty=duty)
    return structs.replace(found, pods=pods, gpus=(sample,))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_class_day_of_gpus_holds_each_minute_however_messages_come(seed):
    """Two hours over midnight; doubled, shuffled, workers that die."""
    random, rig = Random(seed), Rig()
    start = datetime(2026, 11, 22, 23, 15, tzinfo=UTC)
    for i in range(90):
        rig.clock.time = start + i * MINUTE
        rig.push(with_gpus(i + 1, rig.clock.time, duty=i % 2 * i))
    sent = rig.queue.sent + random.sample(rig.queue.sent, 30)
    order = sorted(range(len(sent)), key=lambda i: sent[i].sequence + random.uniform(-20, 20))
    for i in order:
        if random.random() < 0.2:
            with suppress(KilledError):
                rig.over(Dying(rig.tenants, random.randrange(4))).work(sent[i])
        rig.service.work(sent[i])
    for i in range(75):
        rig.clock.time = start + (90 + i) * MINUTE
        rig.push(a_snapshot(91 + i, at=rig.clock.time))
    rig.queue.sent = rig.queue.sent[90:]
    rig.work_off()
    first, second = class_days(rig.data, SHOP, start.date(), "").days
    assert [each.day.day for each in (first, second)] == [22, 23]
    assert (first.of.owner, first.of.model) == ("web", "H200")
    assert [int(each.pods[0].seen, 16).bit_count() for each in (first, second)] == [45, 45]
    assert [int(each.pods[0].busy, 16).bit_count() for each in (first, second)] == [22, 23]
    assert first.pods[0].duty[92:] == (-1, 13, 29, 43)
    assert second.pods[0].duty[:4] == (59, 73, 89, -1)


def test_no_snapshot_writes_more_for_gpus_but_that_which_closes_an_hour():
    rig = Rig()
    for i in range(61):
        rig.clock.time = NOW + i * MINUTE
        rig.push(with_gpus(i + 1, rig.clock.time, duty=1))
    written = []
    while rig.queue.sent:
        counting = Dying(rig.tenants, 1000)
        rig.clock.time = rig.queue.sent[0].received_at
        rig.over(counting).work(rig.queue.sent.pop(0))
        written.append(1000 - counting.writes)
    usual, closing = written[1], max(written)
    assert written.count(usual) >= 59
    assert closing == usual + 2  # the hour, and the day of GPUs


def test_of_too_many_classes_on_a_day_the_rest_is_counted(monkeypatch):
    monkeypatch.setattr(gpu_history, "MOST_CLASSES_OF_DAY", 2)
    rig = Rig()
    pods = tuple(
        structs.replace(pod, uid=f"p{n}", gpus={"nvidia.com/gpu": 1}, template=f"t{n}")
        for n, pod in enumerate(a_snapshot().pods * 2)
    )
    rig.push(structs.replace(a_snapshot(), pods=pods))
    rig.clock.time = NOW + 30 * MINUTE
    rig.push(a_snapshot(2, at=rig.clock.time))
    rig.work_off()
    found = class_days(rig.data, SHOP, NOW.date(), "")
    assert (len(found.days), found.left_out, found.next) == (2, 2, "")


def test_a_page_of_class_days_is_bounded_and_the_next_one_goes_on(monkeypatch):
    monkeypatch.setattr(gpu_history, "PAGE_BYTES", 1)
    rig = Rig()
    for i in range(3):
        rig.clock.time = NOW + timedelta(days=i)
        rig.push(with_gpus(2 * i + 1, rig.clock.time, duty=1))
        rig.clock.time += timedelta(hours=1)
        rig.push(a_snapshot(2 * i + 2, at=rig.clock.time))
    rig.work_off()
    seen, after = [], ""
    while True:
        page = class_days(rig.data, SHOP, NOW.date() + timedelta(days=1), after)
        seen += [each.day.day for each in page.days]
        if not (after := page.next):
            break
    assert seen == [23, 24]


def test_usage_is_that_of_whole_hours_and_of_the_minutes_since():
    rig = Rig()
    for i in range(90):
        rig.clock.time = NOW + i * MINUTE
        full = a_snapshot(i + 1, at=rig.clock.time)
        used = tuple(Usage(uid=p.uid, cpu_m=250, memory=2**28) for p in full.pods)
        rig.push(msgspec.structs.replace(full, usage=used))
    rig.work_off()
    known = newest(rig.data, SHOP)
    assert known is not None
    found, left_out = usage(rig.data, known, NOW, NOW + 90 * MINUTE)
    assert left_out == 0
    assert {uid: its.cpu_m.samples for uid, its in found.items()} == {"uid-web": 180}


def test_two_workers_that_write_at_once_both_count():
    """The second finds that the first wrote meanwhile, and looks again."""
    rig = Rig()
    rig.push(a_snapshot(1))
    rig.push(a_snapshot(2, at=NOW + MINUTE))
    first, second = rig.queue.sent
    busy = Interrupted(rig.tenants, lambda: rig.service.work(first))
    assert rig.over(busy).work(second)
    found = newest(rig.data, SHOP)
    assert found is not None
    assert found.snapshot.sequence == 2
    assert len(list(rollups(rig.data, SHOP, Span.MINUTE, NOW, NOW + MINUTE))) == 2


def test_a_late_minute_counts_although_its_hour_is_closed_at_the_same_time():
    """Another worker closes the hour after the late one looked, and before it writes."""
    rig = Rig()
    for sequence, minutes in ((1, 0), (2, 1), (3, 30)):  # the third is of the next hour
        rig.clock.time = NOW + minutes * MINUTE
        rig.push(a_snapshot(sequence, at=rig.clock.time))
    late, known, closing = rig.queue.sent
    rig.service.work(known)
    busy = Interrupted(rig.tenants, lambda: rig.service.work(closing))
    assert not rig.over(busy).work(late)
    rig.clock.time += 11 * MINUTE
    rig.push(a_snapshot(4, at=rig.clock.time))
    rig.service.work(rig.queue.sent[-1])
    [hour] = rollups(rig.data, SHOP, Span.HOUR, NOW, NOW)
    assert hour.samples == 2


def test_a_snapshot_that_shows_other_nodes_asks_for_advice_until_there_is_some():
    rig = Rig()
    for sequence, nodes in ((1, 1), (2, 1), (3, 2), (4, 2)):
        rig.clock.time = NOW + sequence * MINUTE
        rig.push(a_snapshot(sequence, at=rig.clock.time, nodes=nodes))
        rig.work_off()
        if sequence == 1:
            continue  # its request is lost: the next snapshot asks again
        advised = LastAdvice(
            at=rig.clock.time, configuration=configuration_of(a_snapshot(nodes=nodes))
        )
        _, version = last_advice(rig.data, SHOP)
        rig.data.put(
            SHOP, ADVISED, msgspec.json.encode(advised), version=version, expires=NOW + 9 * MINUTE
        )
    assert [(r.tenant, r.cluster, r.at) for r in rig.advice.sent] == [
        ("acme", SHOP, NOW + sequence * MINUTE) for sequence in (1, 2, 3)
    ]


def test_an_old_snapshot_that_comes_late_asks_for_nothing():
    rig = Rig()
    rig.push(a_snapshot(1))
    rig.push(a_snapshot(2, at=NOW + MINUTE, nodes=2))
    rig.queue.sent.reverse()
    rig.work_off()
    assert len(rig.advice.sent) == 1


def test_where_the_request_for_advice_is_not_taken_the_snapshot_comes_back_and_asks_again():
    class Closed(MemoryAdviceQueue):
        def send(self, requests: Sequence[AdviceRequest]) -> None:
            raise Temporary(f"no room for {len(requests)}")

    rig = Rig()
    rig.push(a_snapshot(1))
    [sent] = rig.queue.sent
    with pytest.raises(Temporary):
        replace(rig.service, advice=Closed()).work(sent)
    assert rig.service.work(sent)
    assert len(rig.advice.sent) == 1


class KilledError(Exception):
    """The worker was killed."""


@dataclass
class Dying:
    """Tenants whose worker is killed at its n-th write."""

    inner: MemoryTenants
    writes: int

    def of(self, tenant: str) -> Any:
        return Wrapped(self.inner.of(tenant), self._before_put)

    def _before_put(self) -> None:
        if self.writes == 0:
            raise KilledError
        self.writes -= 1


@dataclass
class Faulty:
    """Tenants whose writes are throttled, or die."""

    inner: MemoryTenants
    random: Random

    def of(self, tenant: str) -> Any:
        return Wrapped(self.inner.of(tenant), self._before_put)

    def _before_put(self) -> None:
        drawn = self.random.random()
        if drawn < 0.1:
            raise Throttled("the table is throttled")
        if drawn < 0.2:
            raise KilledError


@dataclass
class Interrupted:
    """Tenants to whom something happens before the first write."""

    inner: MemoryTenants
    happens: Any

    def of(self, tenant: str) -> Any:
        return Wrapped(self.inner.of(tenant), self._before_put)

    def _before_put(self) -> None:
        happens, self.happens = self.happens, None
        if happens:
            happens()


@dataclass
class Wrapped:
    inner: MemoryTenantData
    before_put: Any

    def put(self, *args: Any, **more: Any) -> Any:
        self.before_put()
        return self.inner.put(*args, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def test_a_document_that_others_write_without_end_comes_back_later():
    class Contended(MemoryTenantData):
        def put(self, *_: Any, **__: Any) -> Any:
            raise Conflict("again")

    rig = Rig()
    rig.push(a_snapshot(1))
    [sent] = rig.queue.sent
    contended = Contended(rig.clock, rig.data._documents, rig.data._snapshots)
    rig.tenants._data[AGENT.tenant] = contended
    with pytest.raises(Temporary):
        rig.service.work(sent)


# --- What one agent may cost -------------------------------------------------------------------------


def test_an_hour_for_which_snapshots_come_late_is_made_anew_once_in_ten_minutes_and_then_whole():
    """Each comes after the hour was closed, and before the last one that was worked in."""
    rig = Rig()
    rig.clock.time = NOW + 31 * MINUTE  # 13:01
    for sequence, minutes in ((1, -20), (2, 31)):
        rig.push(a_snapshot(sequence, at=NOW + minutes * MINUTE))
    rig.work_off()
    made: list[str] = []
    counting = rig.over(Counting(rig.tenants, made))
    late = range(20)
    for n in late:
        rig.push(a_snapshot(100 + 2 * n, at=NOW - (19 - n) * MINUTE))  # of the hour before
        rig.push(a_snapshot(101 + 2 * n, at=rig.clock.time))
        for arrival in rig.queue.sent:
            counting.work(arrival)
        rig.queue.sent.clear()
        rig.clock.time += 10 * timedelta(seconds=1)
    assert made.count("hour#2026-11-22T12:00") <= 1
    for _ in range(2):
        rig.clock.time += 11 * MINUTE
        rig.push(a_snapshot(200 + int(rig.clock.time.timestamp()), at=rig.clock.time))
        counting.work(rig.queue.sent.pop())
    [hour] = rollups(rig.data, SHOP, Span.HOUR, NOW, NOW)
    assert hour.samples == 1 + len(late)
    assert made.count("hour#2026-11-22T12:00") <= 3


def test_a_snapshot_that_is_pushed_again_and_again_makes_nothing_anew():
    rig = Rig()
    for sequence, minutes in ((1, 0), (2, 31), (3, 1), (4, 32)):
        rig.clock.time = NOW + 32 * MINUTE
        rig.push(a_snapshot(sequence, at=NOW + minutes * MINUTE))
    rig.work_off()
    made: list[str] = []
    counting = rig.over(Counting(rig.tenants, made))
    rig.clock.time += 30 * MINUTE
    rig.push(a_snapshot(4, at=NOW + 32 * MINUTE))
    [again] = rig.queue.sent
    for _ in range(5):
        assert counting.work(again)
    assert made == []


def test_one_snapshot_makes_one_hour_or_day_at_most():
    rig = Rig()
    midnight = datetime(2026, 11, 23, tzinfo=UTC)
    for sequence, at in ((1, midnight - MINUTE), (2, midnight)):
        rig.clock.time = at
        rig.push(a_snapshot(sequence, at=at))
    rig.work_off()
    assert [h.samples for h in rollups(rig.data, SHOP, Span.HOUR, NOW, midnight)] == [1]
    assert not list(rollups(rig.data, SHOP, Span.DAY, NOW, NOW))
    rig.push(a_snapshot(3, at=midnight + MINUTE))
    rig.work_off()
    assert [d.samples for d in rollups(rig.data, SHOP, Span.DAY, NOW, NOW)] == [1]


def test_a_delta_that_makes_more_of_its_base_than_a_snapshot_may_hold_is_discarded():
    rig = Rig()
    base = msgspec.structs.replace(a_snapshot(1), workloads=many(15_000, "a"))
    whole = msgspec.structs.replace(a_snapshot(2), workloads=many(15_000, "b"))
    rig.push(base)
    rig.push(msgspec.structs.replace(delta(base, whole), deleted=()))
    with pytest.raises(Discardable, match="30000 workloads"):
        rig.work_off()


def many(number: int, name: str) -> tuple[Workload, ...]:
    like = wire_workload("web")
    return tuple(msgspec.structs.replace(like, uid=f"{name}-{n}") for n in range(number))


@dataclass
class Counting:
    """Tenants who write down which hours and days are written."""

    inner: MemoryTenants
    made: list[str]

    def of(self, tenant: str) -> Any:
        data = self.inner.of(tenant)

        class Noted(Wrapped):
            def put(noted, cluster: str, key: str, *args: Any, **more: Any) -> Any:  # noqa: N805
                if key.startswith(("hour#", "day#")):
                    self.made.append(key)
                return data.put(cluster, key, *args, **more)

        return Noted(data, lambda: None)


def test_all_that_is_made_of_snapshots_expires():
    rig = Rig()
    for sequence, hours in enumerate((0, 1, 24, 25), 1):
        rig.clock.time = NOW + timedelta(hours=hours)
        rig.push(a_snapshot(sequence, at=rig.clock.time))
        rig.work_off()
    assert list(rig.data.list(SHOP, "hour#", "hour#~"))
    rig.clock.time += timedelta(days=401)
    assert list(rig.data.list(SHOP, "", "~")) == []
