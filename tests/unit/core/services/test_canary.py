"""A canary is a notice that touches nothing, and is written down when somebody waits for it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.domain.errors import BadInput, Temporary
from plimsoll.domain.notices import Canary, parse
from plimsoll.domain.reports import CANARY_REPORTS, Metric, Report, canary_seen
from plimsoll.services.trusted_sources import TrustedSources
from tests.support.workload_sets import WiredServices

NOW = datetime(2026, 11, 17, 18, 0, tzinfo=UTC)


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


def test_the_one_of_the_schedule_has_no_word():
    assert parse(event(by="schedule"), received=NOW) == (
        Canary(id="an-event", time=datetime(2026, 11, 17, 17, 45, tzinfo=UTC)),
    )


@pytest.mark.parametrize("word", ["two words", "a@b", "x" * 65, 7])
def test_a_word_that_could_be_anything_else_is_refused(word):
    with pytest.raises(BadInput, match=r"detail\.word"):
        parse(event(word=word), received=NOW)


def test_a_word_is_written_down_apart_from_the_reports_of_any_cluster():
    rig = WiredServices()
    assert rig.notices.receive([event(word="ask-1")]) == [None]
    assert canary_seen(rig.reports.list(CANARY_REPORTS), "ask-1") == rig.time
    assert canary_seen(rig.reports.list(CANARY_REPORTS), "ask-2") is None
    assert rig.reports.list("harbor") == []


def test_a_canary_writes_nothing_to_a_cluster_and_wakes_nobody():
    rig = WiredServices()
    rig.join("spot", capacity="spot")
    before = rig.version()
    rig.notices.receive([event(), event(word="ask-1")])
    assert rig.version() == before
    assert rig.wake_ups.sent == []
    assert len(rig.reports.list(CANARY_REPORTS)) == 1


def test_only_the_schedules_canary_is_counted_and_nobody_waits_for_it():
    rig = WiredServices()
    service = replace(rig.notices, sources=TrustedSources(canary_word="6d2f"))
    assert service.receive([event(), event(word="ask-1")]) == [None, None]
    assert rig.telemetry.metrics[Metric.CANARIES_SEEN] == 0
    assert service.receive([event(word="6d2f")]) == [None]
    assert rig.telemetry.metrics[Metric.CANARIES_SEEN] == 1
    assert canary_seen(rig.reports.list(CANARY_REPORTS), "6d2f") is None


def test_a_table_that_does_not_answer_neither_brings_a_canary_back_nor_hurts_its_neighbours():
    rig = WiredServices()
    instance = rig.join("spot", capacity="spot")
    reports = DeadReports()
    service = replace(rig.notices, reports=reports)
    errors = service.receive([event(word="ask-1"), rig.spot_event(instance)])
    assert errors == [None, None]
    assert reports.asked == ["canary@ask-1"]
    assert rig.node("spot").unschedulable
