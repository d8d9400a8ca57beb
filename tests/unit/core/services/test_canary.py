"""A canary is a notice that touches nothing, and is heard where it is signed by the secret of the stack."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.domain.errors import BadInput, Temporary
from plimsoll.domain.notices import SCHEDULED_CANARY, Canary, canary_word, parse
from plimsoll.domain.reports import CANARY_REPORTS, Metric, Report, canary_seen
from plimsoll.services.notices import NoticeService
from plimsoll.services.trusted_sources import TrustedSources
from tests.support.workload_sets import WiredServices

NOW = datetime(2026, 11, 17, 18, 0, tzinfo=UTC)
SECRET = "of-the-stack"


def event(**detail: Any) -> str:
    return json.dumps(
        {
            "version": "0",
            "id": "an-event",
            "detail-type": "Plimsoll Canary",
            "source": "plimsoll.canary",
            "account": "111122223333",
            "time": "2026-11-17T17:45:00Z",
            "region": "us-east-1",
            "resources": [],
            "detail": detail,
        }
    )


@dataclass
class DeadReports:
    """A table that does not answer."""

    asked: list[str] = field(default_factory=list)

    def merge(self, report: Report) -> Report:
        self.asked.append(report.interruption)
        raise Temporary("DynamoDB does not answer")

    def list(self, cluster: str, limit: int = 50) -> list[Report]:
        return []


def hearing(rig: WiredServices, **other: Any) -> NoticeService:
    return replace(rig.notices, sources=TrustedSources(canary_key=lambda: SECRET), **other)


def test_a_canary_may_have_no_word():
    assert parse(event(by="schedule"), received=NOW) == (
        Canary(id="an-event", time=datetime(2026, 11, 17, 17, 45, tzinfo=UTC)),
    )


@pytest.mark.parametrize("word", ["two words", "a@b", "x" * 161, 7])
def test_a_word_that_could_be_anything_else_is_refused(word):
    with pytest.raises(BadInput, match=r"detail\.word"):
        parse(event(word=word), received=NOW)


@pytest.mark.parametrize(
    "detail", [{"word": "two words"}, {"word": 7}, {"word": "x" * 2**19}, {"word": [[[[]]]]}]
)
def test_a_malformed_canary_is_refused_and_rings_no_alarm(detail):
    """Whoever may put events can put it: it neither comes back nor is set aside."""
    rig = WiredServices()
    instance = rig.join("spot", capacity="spot")
    errors = hearing(rig).receive([event(**detail), rig.spot_event(instance)])
    assert errors == [None, None]
    assert rig.telemetry.metrics[Metric.NOTICES_IGNORED] == 1
    assert rig.node("spot").unschedulable


def test_a_malformed_event_of_aws_is_set_aside():
    """Nobody else can put it: it is we who misread it, and a person has to look."""
    rig = WiredServices()
    body = json.loads(rig.spot_event(rig.join("spot", capacity="spot")))
    [error] = hearing(rig).receive([json.dumps(body | {"detail": {"instance-id": "odd"}})])
    assert isinstance(error, BadInput)


def test_a_name_is_written_down_apart_from_the_reports_of_any_cluster():
    rig = WiredServices()
    word = canary_word("ask-1", SECRET, rig.time)
    assert hearing(rig).receive([event(word=word)]) == [None]
    assert canary_seen(rig.reports.list(CANARY_REPORTS), "ask-1") == rig.time
    assert canary_seen(rig.reports.list(CANARY_REPORTS), "ask-2") is None
    assert rig.reports.list("harbor") == []


def test_a_canary_writes_nothing_to_a_cluster_and_wakes_nobody():
    rig = WiredServices()
    rig.join("spot", capacity="spot")
    before = rig.version()
    hearing(rig).receive([event(), event(word=canary_word("ask-1", SECRET, rig.time))])
    assert rig.version() == before
    assert rig.wake_ups.sent == []
    assert len(rig.reports.list(CANARY_REPORTS)) == 1


def test_only_the_schedules_canary_is_counted_and_nobody_waits_for_it():
    rig = WiredServices()
    asked = canary_word("ask-1", SECRET, rig.time)
    hearing(rig).receive([event(), event(word=asked)])
    assert rig.telemetry.metrics[Metric.CANARIES_SEEN] == 0
    word = canary_word(SCHEDULED_CANARY, SECRET, rig.time)
    assert hearing(rig).receive([event(word=word)]) == [None]
    assert rig.telemetry.metrics[Metric.CANARIES_SEEN] == 1
    assert canary_seen(rig.reports.list(CANARY_REPORTS), SCHEDULED_CANARY) is None


def test_whoever_has_not_the_secret_neither_hides_a_missing_canary_nor_fills_the_reports():
    rig = WiredServices()
    now, late = rig.time, timedelta(minutes=16)
    ours = canary_word(SCHEDULED_CANARY, SECRET, now)
    words = [
        "6d2f-word",
        canary_word(SCHEDULED_CANARY, "of-another", now),
        canary_word(SCHEDULED_CANARY, SECRET, now - late),
        canary_word(SCHEDULED_CANARY, SECRET, now + late),
        ours.replace(SCHEDULED_CANARY, "ask-1"),
        ours[:-1],
        *(canary_word(f"ask-{n}", "of-another", now) for n in range(100)),
    ]
    assert hearing(rig).receive([event(word=word) for word in words]) == [None] * len(words)
    assert rig.telemetry.metrics[Metric.CANARIES_SEEN] == 0
    assert rig.reports.list(CANARY_REPORTS) == []


def test_a_secret_that_cannot_be_read_brings_no_canary_back():
    def no_secret() -> str:
        raise Temporary("Secrets Manager does not answer")

    rig = WiredServices()
    service = replace(rig.notices, sources=TrustedSources(canary_key=no_secret))
    word = canary_word(SCHEDULED_CANARY, SECRET, rig.time)
    assert service.receive([event(word=word)]) == [None]
    assert rig.telemetry.metrics[Metric.CANARIES_SEEN] == 0


def test_a_table_that_does_not_answer_neither_brings_a_canary_back_nor_hurts_its_neighbours():
    rig = WiredServices()
    instance = rig.join("spot", capacity="spot")
    reports = DeadReports()
    word = canary_word("ask-1", SECRET, rig.time)
    errors = hearing(rig, reports=reports).receive([event(word=word), rig.spot_event(instance)])
    assert errors == [None, None]
    assert reports.asked == ["canary@ask-1"]
    assert rig.node("spot").unschedulable
