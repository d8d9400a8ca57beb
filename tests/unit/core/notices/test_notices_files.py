"""Every event on file is read as its kind: the files have the documented shapes."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

import pytest

from plimsoll.domain.notices import (
    TABLE,
    Canary,
    HealthScheduledChange,
    InstanceNotice,
    InterruptionTaint,
    LifecycleTerminate,
    Notice,
    RebalanceRecommendation,
    SpotInterruption,
    StateChange,
    ZonalShift,
    parse,
)
from plimsoll.domain.notices.capacity_reservation import CapacityReservationInterruption
from plimsoll.domain.notices.lifecycle import TestNotification

EVENTS = Path(__file__).parents[3] / "events"
NOW = datetime(2026, 11, 17, 18, 0, tzinfo=UTC)

KINDS: dict[str, type] = {
    **{k.kind: k for k in get_args(InstanceNotice.__value__) if k is not StateChange},
    "canary": Canary,
    "interruption-taint": InterruptionTaint,
    "lifecycle-sqs-flat": LifecycleTerminate,
    "lifecycle-test-notification": TestNotification,
    "state-change-running": StateChange,
    "state-change-terminated": StateChange,
    "zonal-autoshift": ZonalShift,
}


def read(name: str) -> tuple[Notice, ...]:
    return parse((EVENTS / f"{name}.json").read_text(), received=NOW, region="us-east-1")


def the_notice(name: str) -> Notice:
    (notice,) = read(name)
    return notice


def test_each_file_has_a_kind_and_each_kind_a_file():
    assert {path.stem for path in EVENTS.glob("*.json")} == set(KINDS)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_file_is_read_as_its_kind(name):
    assert {type(notice) for notice in read(name)} == {KINDS[name]}


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_file_is_read_the_same_as_text_and_as_bytes_and_decoded(name):
    text = (EVENTS / f"{name}.json").read_text()
    readings = [parse(body, received=NOW) for body in (text, text.encode(), json.loads(text))]
    assert readings[0] == readings[1] == readings[2]


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_file_wrapped_by_sns_is_read_the_same(name):
    text = (EVENTS / f"{name}.json").read_text()
    wrapped = json.dumps({"Type": "Notification", "Message": text})
    assert parse(wrapped, received=NOW) == parse(text, received=NOW)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_every_time_is_aware_and_utc(name):
    for notice in read(name):
        times = [getattr(notice, field.name) for field in fields(notice)]
        offsets = {time.utcoffset() for time in times if isinstance(time, datetime)}
        assert offsets == {timedelta(0)}


def test_every_parser_in_the_table_reads_some_file():
    declared = {
        (event.get("source"), event.get("detail-type"))
        for event in (json.loads(path.read_text()) for path in EVENTS.glob("*.json"))
    }
    assert {TABLE[name] for name in declared & set(TABLE)} == set(TABLE.values())


def test_a_spot_interruption_ends_two_minutes_after_its_own_time():
    notice = the_notice("spot-interruption")
    assert isinstance(notice, SpotInterruption)
    assert notice.time == datetime(2026, 11, 17, 14, 14, 14, tzinfo=UTC)
    assert notice.ends == datetime(2026, 11, 17, 14, 16, 14, tzinfo=UTC)
    assert notice.instance == "i-0b662ef9931388ba0"
    assert (notice.account, notice.region, notice.zone) == (
        "111122223333",
        "us-east-1",
        "us-east-1b",
    )


def test_a_rebalance_recommendation_has_a_zone_and_no_end():
    notice = the_notice("rebalance-recommendation")
    assert isinstance(notice, RebalanceRecommendation)
    assert (notice.zone, notice.ends) == ("us-east-1b", None)


def test_a_capacity_reservation_names_its_end_and_its_zone_by_id():
    notice = the_notice("capacity-reservation-interruption")
    assert isinstance(notice, CapacityReservationInterruption)
    assert notice.ends == datetime(2026, 11, 17, 16, 42, 5, tzinfo=UTC)
    assert (notice.zone, notice.zone_id) == (None, "use1-az4")


def test_a_health_event_is_a_notice_for_each_of_its_instances():
    notices = read("health-scheduled-change")
    assert [n.instance for n in notices if isinstance(n, HealthScheduledChange)] == [
        "i-0633ac2b0d9769723",
        "i-0194708ef7e24dcc7",
    ]
    assert len({n.id for n in notices if isinstance(n, HealthScheduledChange)}) == 2


def test_an_autoshift_is_about_a_zone():
    notice = the_notice("zonal-autoshift")
    assert isinstance(notice, ZonalShift)
    assert (notice.zone_id, notice.cause, notice.active) == ("use1-az2", "autoshift", True)
