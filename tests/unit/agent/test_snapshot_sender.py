"""The agent's snapshots on their way: taken while the service is away, sent once it is back."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from plimsoll.domain.errors import BadInput, MissingRights, PlimsollError, Temporary, Throttled
from plimsoll_agent import backoff
from plimsoll_agent.cluster_reader import Seen
from plimsoll_agent.snapshot_sender import SnapshotSender
from plimsoll_agent.spool import Spool
from plimsoll_service.wire import snapshot as wire
from plimsoll_service.wire.access import Accepted
from tests.support.cli_environment import StillClock
from tests.support.snapshots import wire_node, wire_pods, wire_workload

WEB = wire_workload("web", replicas=400)
EMPTY = Seen(
    kubernetes="v1.36.3",
    nodes=[wire_node("a")],
    pods=wire_pods(WEB, *["a"] * 400),
    controllers=[],
    namespaces={},
    volumes=[],
    volume_types={},
    budgets=[],
    autoscalers=[],
    balanced=[],
    endpoints=[],
    node_usage={},
    pod_usage={},
    limit_ranges={},
)
ABOUT = wire.AgentState(version="0.2.0", mode="read-only", policy="valid")


@dataclass
class Counted:
    sizes: list[int] = field(default_factory=list)
    fulls: list[bool] = field(default_factory=list)
    drops: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    waiting: int = 0

    def taken(self, *, full: bool, size: int) -> None:
        self.fulls.append(full)
        self.sizes.append(size)

    def sent(self, size: int) -> None: ...

    def dropped(self, why: str) -> None:
        self.drops.append(why)

    def failed(self, what: str) -> None:
        self.failures.append(what)

    def spooled(self, count: int, size: int) -> None:
        self.waiting = count


@dataclass
class TheService:
    """Keeps what it takes, as the real one does: a full snapshot, or a delta to one that it has."""

    kept: list[wire.Snapshot] = field(default_factory=list)
    away: PlimsollError | None = None
    answer: Accepted = field(default_factory=lambda: Accepted(accepted=1))

    def push(self, body: bytes) -> Accepted:
        if self.away is not None:
            raise self.away
        self.kept.append(wire.decode(body))
        return self.answer

    @property
    def latest(self) -> wire.Snapshot:
        """The cluster as it is known now."""
        last = self.kept[-1]
        return last if last.full else wire.apply(self._base(last), last)

    def _base(self, delta: wire.Snapshot) -> wire.Snapshot:
        return next(s for s in self.kept if (s.epoch, s.sequence) == (delta.epoch, delta.base))


@dataclass
class Agent:
    sender: SnapshotSender
    service: TheService
    measures: Counted
    clock: StillClock
    seen: Seen = EMPTY
    follow: Callable[[], None] = lambda: None

    def round(self, minutes: float = 1) -> float:
        self.sender.take()
        pause = self.sender.send()
        self.clock.time += timedelta(minutes=minutes)
        return pause


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Agent]:
    def an_agent(most_bytes: int = 2**20, service: TheService | None = None) -> Agent:
        service, measures, clock = service or TheService(), Counted(), StillClock()

        def followed() -> None:
            agent.follow()

        sender = SnapshotSender(
            cluster_id="c-1",
            follow=followed,
            read=lambda: agent.seen,
            about=lambda: ABOUT,
            push=service.push,
            spool=Spool(tmp_path / "spool", most_bytes),
            clock=clock,
            measures=measures,
            warn=lambda _: None,
        )
        agent = Agent(sender, service, measures, clock)
        return agent

    return an_agent


def test_the_first_snapshot_is_full_and_those_after_it_tell_what_changed(make):
    agent = make()
    agent.round()
    agent.seen = replace(EMPTY, nodes=[wire_node("a"), wire_node("b")])
    agent.round()
    first, second = agent.service.kept
    assert (first.full, second.base, [n.name for n in second.nodes]) == (True, 1, ["b"])
    assert second.pods == ()
    assert [n.name for n in agent.service.latest.nodes] == ["a", "b"]
    assert agent.measures.sizes[1] < agent.measures.sizes[0] / 2


def test_an_hour_without_the_service_leaves_no_gap_and_the_order_holds(make):
    agent = make()
    agent.round()
    agent.service.away = Temporary("503")
    for _ in range(60):
        agent.round()
    assert agent.measures.waiting == 60
    agent.service.away = None
    agent.round()
    assert [s.sequence for s in agent.service.kept] == list(range(1, 63))
    assert agent.measures.drops == []


def test_what_waits_survives_a_restart_and_the_new_series_has_its_own_epoch(make):
    before = make()
    before.service.away = Temporary("503")
    before.round()
    before.round()
    after = make()
    after.round()
    epochs = [snapshot.epoch for snapshot in after.service.kept]
    assert epochs == [before.sender.epoch] * 2 + [after.sender.epoch]
    assert after.service.kept[-1].full


def test_a_full_spool_gives_up_old_deltas_and_keeps_what_the_others_need(make):
    agent = make()
    agent.round()
    room = int(agent.measures.sizes[0] * 1.5)
    small = make(most_bytes=room)
    small.service.away = Temporary("503")
    for _ in range(50):
        small.round()
    small.service.away = None
    small.round()
    first, *rest = small.service.kept
    assert first.full
    assert first.sequence == 1
    assert [s.sequence for s in rest] == list(range(52 - len(rest), 52))
    assert set(small.measures.drops) == {"spool full"}
    assert len(small.measures.drops) + len(small.service.kept) == 51
    assert small.service.latest.pods == EMPTY.pods


def test_asked_for_a_resync_it_sends_all_of_it(make):
    agent = make()
    agent.service.answer = Accepted(accepted=1, resync=True)
    agent.round()
    agent.service.answer = Accepted(accepted=1)
    agent.round()
    agent.round()
    assert [s.full for s in agent.service.kept] == [True, True, False]


def test_a_full_snapshot_is_repeated_each_hour_and_when_most_has_changed(make):
    agent = make()
    agent.round(minutes=59)
    agent.round(minutes=1)
    agent.round()
    agent.seen = replace(EMPTY, pods=wire_pods(wire_workload("cart"), *["a"] * 400))
    agent.round()
    assert agent.measures.fulls == [True, False, True, True]


def test_a_snapshot_that_nobody_will_take_is_given_up_and_blocks_no_other(make):
    agent = make()
    agent.service.away = BadInput("400")
    agent.round()
    agent.service.away = None
    agent.round()
    assert agent.measures.drops == ["refused"]
    assert [s.full for s in agent.service.kept] == [True]


@pytest.mark.parametrize("error", [Temporary("503"), MissingRights("401"), Throttled("429")])
def test_what_may_work_later_is_kept_and_tried_again(make, error):
    agent = make()
    agent.service.away = error
    agent.round()
    assert agent.measures.waiting == 1
    assert agent.measures.failures == ["send"]


def test_it_comes_back_when_the_service_says(make):
    agent = make()
    agent.service.answer = Accepted(accepted=1, next_poll_s=15, instructions_pending=True)
    assert agent.round() == 15
    assert agent.sender.pending


def test_after_failures_it_waits_longer_at_random_and_never_less_than_asked(make):
    assert max(backoff.pause_after(1) for _ in range(200)) <= 4
    late = [backoff.pause_after(50) for _ in range(200)]
    assert max(late) <= backoff.MOST_SECONDS
    assert len(set(late)) > 100
    assert sum(late) / len(late) == pytest.approx(backoff.MOST_SECONDS / 2, rel=0.3)
    agent = make()
    agent.service.away = Throttled("429", retry_after=90)
    assert agent.round() >= 90


@pytest.mark.parametrize("asked", [1e9, math.inf])
def test_however_long_the_service_asks_to_be_left_alone_it_is_asked_again_within_ten_minutes(
    make, asked
):
    agent = make()
    agent.service.away = Throttled("429", retry_after=asked)
    assert backoff.MOST_SECONDS <= agent.round() <= 2 * backoff.MOST_SECONDS


def test_a_cluster_that_does_not_answer_costs_a_snapshot_and_no_number(make):
    agent = make()

    def fail() -> Seen:
        raise Temporary("no answer")

    agent.round()
    agent.sender.read, read = fail, agent.sender.read
    agent.round()
    agent.sender.read = read
    agent.round()
    assert [s.sequence for s in agent.service.kept] == [1, 2]
    assert agent.measures.failures == ["read"]


def test_a_watch_that_cannot_be_resumed_is_counted_and_no_snapshot_is_lost(make):
    def away() -> None:
        raise Temporary("the API server does not answer")

    agent = make()
    assert agent.sender.keep_up()
    agent.follow = away
    assert not agent.sender.keep_up()
    agent.round()
    assert agent.measures.failures == ["watch"]
    assert len(agent.service.kept) == 1


def test_a_snapshot_that_somebody_deleted_from_the_disk_blocks_no_other(make):
    agent = make()
    agent.service.away = Temporary("503")
    agent.round()
    agent.round()
    spool = agent.sender.spool
    (spool._folder / spool.entries[0].name).unlink()
    agent.service.away = None
    agent.round()
    assert agent.measures.drops == ["lost"]
    assert agent.service.kept[-1].sequence == 3
    agent.round()
    assert agent.service.kept[-1].full


def test_a_cluster_whose_snapshot_is_larger_than_the_spool_is_said_and_nothing_is_dropped_for_it(
    make,
):
    agent = make(most_bytes=10)
    agent.round()
    assert agent.measures.failures == ["spool"]
    assert agent.service.kept == []


def test_half_a_file_and_a_strange_one_are_no_snapshots(tmp_path):
    spool = Spool(tmp_path, 100)
    spool.put("e", 1, 0, b"x")
    (tmp_path / "000000000000002-e-2-0.gz.half").write_bytes(b"")
    (tmp_path / "lost+found").mkdir()
    again = Spool(tmp_path, 100)
    assert [(entry.sequence, again.body(entry)) for entry in again.entries] == [(1, b"x")]
