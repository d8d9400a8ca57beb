"""Frames are kept beside the drains: nobody waits for the table, and what is lost is counted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from threading import Event

import pytest

from plimsoll.adapters import frame_mailbox
from plimsoll.adapters.frame_mailbox import FrameMailbox
from plimsoll.domain.errors import Temporary
from plimsoll.domain.frames import Frame
from tests.unit.core.frames.test_storm_messages import a_frame

SECONDS = 5


@dataclass
class Table:
    """A table that answers once it is let."""

    kept: list[Frame] = field(default_factory=list)
    begun: set[object] = field(default_factory=set)
    free: Event = field(default_factory=Event)
    fails: bool = False

    def latest(self, cluster: str) -> Frame | None:
        self._answer()
        return next((f for f in reversed(self.kept) if f.cluster == cluster), None)

    def put(self, frame: Frame) -> None:
        self._answer()
        self.kept.append(frame)

    def begin(self, frame: Frame) -> bool:
        first = frame.storm not in self.begun
        self.begun.add(frame.storm)
        return first

    def _answer(self) -> None:
        self.free.wait(SECONDS)
        if self.fails:
            raise Temporary("the table is away")


@dataclass
class Told:
    subjects: list[str] = field(default_factory=list)

    def tell(self, subject: str, text: str) -> None:
        self.subjects.append(subject)


@pytest.fixture
def table():
    one = Table()
    one.free.set()
    yield one
    one.free.set()


def a_mailbox(table: Table, told: Told | None = None) -> FrameMailbox:
    return FrameMailbox(table, told or Told(), "", warn=lambda _: None)


def test_a_frame_is_written_and_follows_the_one_that_another_process_wrote(table):
    table.kept.append(a_frame())
    mailbox = a_mailbox(table)
    mailbox.watch("harbor")
    before = mailbox.latest("harbor")
    assert before == a_frame()
    mailbox.take(replace(before, number=2))
    assert mailbox.end("harbor", SECONDS) == 0
    assert [frame.number for frame in table.kept] == [1, 2]


def test_of_several_frames_between_two_writes_the_last_is_written(table):
    mailbox = a_mailbox(table)
    mailbox.watch("harbor")
    mailbox.latest("harbor")
    for number in range(1, 30):
        mailbox.take(replace(a_frame(), number=number))
    assert mailbox.end("harbor", SECONDS) == 0
    assert len(table.kept) <= 2
    assert table.kept[-1].number == 29


def test_a_table_that_hangs_delays_nobody_and_its_frame_counts_as_lost(table, monkeypatch):
    monkeypatch.setattr(frame_mailbox, "READ_SECONDS", 0.01)
    table.free.clear()
    mailbox = a_mailbox(table)
    mailbox.watch("harbor")
    assert mailbox.latest("harbor") is None
    mailbox.take(a_frame())
    assert mailbox.end("harbor", 0.01) == 1
    assert table.kept == []


def test_a_table_that_fails_costs_its_frames_and_not_the_later_ones(table):
    mailbox = a_mailbox(table)
    mailbox.watch("harbor")
    mailbox.latest("harbor")
    table.fails = True
    mailbox.take(a_frame())
    assert mailbox.end("harbor", SECONDS) == 1
    table.fails = False
    mailbox.watch("harbor")
    mailbox.take(replace(a_frame(), number=2))
    assert mailbox.end("harbor", SECONDS) == 0
    assert [frame.number for frame in table.kept] == [2]


def test_people_are_told_of_a_storm_once_by_whichever_process_sees_it_first(table):
    told = Told()
    for _ in range(2):
        mailbox = a_mailbox(table, told)
        mailbox.watch("harbor")
        for number in (1, 2):
            mailbox.take(replace(a_frame(), number=number))
            mailbox.end("harbor", SECONDS)
    assert told.subjects == ["harbor: 4 nodes go"]


def test_nobody_is_told_of_a_single_node_whose_pods_are_replaced(table):
    told = Told()
    mailbox = a_mailbox(table, told)
    mailbox.watch("harbor")
    mailbox.take(a_frame(nodes=1))
    mailbox.end("harbor", SECONDS)
    assert told.subjects == []
