"""What the audit finds in a fleet with a known truth, and what it counts."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from plimsoll_service.domain.gpu import Audit, OwnerUse, audit_gpus
from plimsoll_service.wire.gpu import UNSEEN, ClassDay
from tests.support.gpu_days import (
    MONDAY,
    Minute,
    a_class_day,
    a_pod_day,
    always,
    between,
    days_of,
    never,
)

HOURLY = {("p5.48xlarge", "on-demand"): 80.0, ("p5.48xlarge", "spot"): 40.0}
NOW = datetime(2026, 11, 16, 9, tzinfo=UTC)
WORKDAYS = range(5)


def audited(days: list[ClassDay]) -> Audit:
    return audit_gpus(days, HOURLY, NOW)


def use(days: list[ClassDay]) -> OwnerUse:
    return audited(days).owners[0]


def on_one_day(**pod: Any) -> list[ClassDay]:
    return days_of("web", 1, **pod)


def test_gpu_hours_are_minutes_held_times_gpus_and_cost_their_share_of_the_node():
    found = use(on_one_day(seen=between(0, 6), gpus=2))
    assert (found.gpu_hours, found.cost) == (12.0, 120.0)
    assert use(on_one_day(seen=between(0, 6), capacity="spot")).cost == 30.0


def test_a_slice_counts_as_its_share_of_a_gpu():
    day = a_class_day("web", [a_pod_day()], resource="nvidia.com/mig-3g.40gb")
    assert use([day]).gpu_hours == 12.0


def test_replicas_of_a_shared_gpu_split_what_their_node_has():
    pods = [a_pod_day(pod=f"p{n}", node_gpus=1) for n in range(4)]
    assert use([a_class_day("web", pods, sharing="time-slicing")]).gpu_hours == pytest.approx(24.0)


def test_an_instance_without_a_price_is_named_and_costs_nothing():
    found = audited(on_one_day(instance_type="p9.huge"))
    assert found.unpriced == ["p9.huge"]
    assert (found.owners[0].cost, found.owners[0].unpriced_hours) == (0.0, 24.0)


@pytest.mark.parametrize(("minutes", "hours"), [(29, 0), (30, 0.5), (31, 31 / 60)])
def test_an_idle_run_has_thirty_minutes_at_least(minutes: int, hours: float):
    found = use(on_one_day(busy=lambda _, minute: not 100 <= minute < 100 + minutes))
    assert found.idle_gpu_hours == pytest.approx(hours)


def test_an_idle_run_goes_on_over_midnight():
    def busy(day: date, minute: int) -> bool:
        return not (minute >= 1420 if day == MONDAY else minute < 10)

    found = use(days_of("web", 2, busy=busy))
    assert found.idle_gpu_hours == pytest.approx(0.5)
    assert {hour: each for hour, each in enumerate(found.by_hour) if each} == {
        23: pytest.approx(20 / 60),
        24: pytest.approx(10 / 60),
    }


def test_time_that_is_not_measured_is_not_idle():
    found = use(on_one_day(busy=never, duty=UNSEEN))
    assert (found.idle_gpu_hours, found.unknown_hours, found.never_touched) == (0, 24.0, 0)


def test_a_pod_that_is_not_there_is_not_idle():
    assert use(on_one_day(seen=between(0, 1), busy=never)).idle_gpu_hours == 1.0


def test_a_pod_with_a_whole_gpu_that_a_slice_would_hold_is_told():
    assert use(on_one_day()).slice_enough == "1g.10gb"
    assert not use(on_one_day(memory=70_000)).slice_enough
    day = a_class_day("web", [a_pod_day()], resource="nvidia.com/mig-1g.10gb")
    assert not use([day]).slice_enough


def test_metrics_that_are_missing_today_are_told_and_those_of_yesterday_are_not():
    days = [
        a_class_day("web", [a_pod_day()], MONDAY, missing=("DCGM_FI_DEV_FB_USED",)),
        a_class_day(
            "web", [a_pod_day()], MONDAY + timedelta(days=1), missing=("DCGM_FI_PROF_SM_ACTIVE",)
        ),
    ]
    assert dict(audited(days).missing) == {"DCGM_FI_PROF_SM_ACTIVE": 1}


def noise(seed: int, every: int) -> Minute:
    """Work in one minute of so many, at minutes that look random."""
    return lambda day, minute: (
        (day.toordinal() * 1440 + minute + seed) * 2654435761 % 2**32 < (2**32 // every)
    )


def some_hours(seed: int, hours: int) -> Minute:
    """Work in so many hours of a day, which differ from day to day."""
    return lambda day, minute: (day.toordinal() * 7919 + minute // 60 * 104729 + seed) % 24 < hours


def half_week(day: date, minute: int) -> bool:
    """Work all day from Thursday to Sunday, else from 8 to 20."""
    return day.weekday() > 2 or 8 <= minute // 60 < 20


def fleet() -> tuple[list[ClassDay], dict[str, set[str]]]:
    """Owners of known behaviour, and the names of those of which each finding is true."""
    truth: dict[str, set[str]] = {
        "night": set(),
        "weekend": set(),
        "never": set(),
        "slice": set(),
        "idle": set(),
    }
    days: list[ClassDay] = []

    def add(name: str, findings: str, **pod: Any) -> None:
        nonlocal days
        days += days_of(name, **pod)
        for finding in findings.split():
            truth[finding].add(name)

    for n in range(5):
        whole: dict[str, Any] = {"memory": 70_000 + n}
        small: dict[str, Any] = {"memory": 6_000 + n}
        add(f"serves{n}", "", busy=noise(n, 3), **whole)
        add(f"small{n}", "slice", busy=noise(n, 3), **small)
        add(f"night{n}", "night idle", busy=between(6 + n, 20), **whole)
        office = between(7, 18 + n, WORKDAYS)
        add(f"office{n}", "night weekend idle slice", busy=office, **small)
        add(f"week{n}", "weekend idle", busy=between(0, 24, WORKDAYS), **whole)
        add(f"never{n}", "never idle", busy=never, **whole)
        add(f"rare{n}", "idle slice", busy=some_hours(n, 2), **small)
        job: dict[str, Any] = {"kind": "Job", "busy": between(8, 18)}
        add(f"job{n}", "idle", **job, **whole)
        add(f"three{n}", "idle", busy=half_week, **whole)
        add(f"off{n}", "", seen=between(8, 18), busy=always, **whole)
    return days, truth


def test_on_a_fleet_with_a_known_truth_precision_and_recall_are_one():
    days, truth = fleet()
    found = audited(days)
    assert len(found.owners) == 50
    assert {o.owner.name for o in found.owners if o.idle_gpu_hours} == truth["idle"]
    assert {o.owner.name for o in found.owners if o.never_touched} == truth["never"]
    assert {o.owner.name for o in found.owners if o.slice_enough} == truth["slice"]
    schedules = {owner.name: schedule for owner, schedule in found.schedules.items()}
    assert {name for name, s in schedules.items() if s.night} == truth["night"]
    assert {name for name, s in schedules.items() if s.weekend} == truth["weekend"]
    assert schedules["night2"].night == (20, 8)
    assert schedules["office1"].night == (19, 7)
    assert schedules["office1"].on() == [(day * 24 + 7, day * 24 + 19) for day in range(5)]
    assert schedules["week0"].on() == [(0, 120)]


def test_one_weekend_is_no_recurrence():
    days = days_of("week", 7, busy=between(0, 24, WORKDAYS))
    assert not audited(days).schedules
