"""How often pools are reclaimed an hour, and how that decides which group is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.capacity import plan_growth
from plimsoll.domain.kubernetes import Node
from plimsoll.domain.scheduling import ClusterSnapshot
from plimsoll.domain.spot import (
    NEVER_SEEN,
    CapacityPool,
    HeldPool,
    PoolEvent,
    PoolEventKind,
    PoolMemory,
    PoolRate,
    counted_hours,
    ranks_of,
    rate_of,
    reclaim_rates,
    set_aside,
)
from plimsoll.domain.spot.pool_history import MERGED
from plimsoll.domain.spot.pool_rates import (
    HALF_LIFE,
    MOST_POOLS,
    UNBROKEN,
    rate_by_age,
    rate_by_counts,
)
from tests.support.builders import NOON, ZONE_A, ZONE_B, a_group, a_node, a_pod

M5, R5 = (CapacityPool(f"{family}.xlarge", ZONE_A, "spot") for family in ("m5", "r5"))
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def befell(
    before: timedelta, kind: PoolEventKind = PoolEventKind.INTERRUPTION, pool: CapacityPool = M5
) -> PoolEvent:
    return PoolEvent(pool=pool, kind=kind, at=NOON - before)


def held(stood: timedelta, hours: float, pool: CapacityPool = M5) -> HeldPool:
    return HeldPool(pool=pool, since=NOON - stood, hours=hours, at=NOON)


def rate(events: Sequence[PoolEvent] = (), *rows: HeldPool) -> PoolRate:
    return reclaim_rates(events, rows, NOON)[M5]


def spot(name: str, pool: CapacityPool = M5, *, created: datetime = NOON, **how) -> Node:
    labels = {"node.kubernetes.io/instance-type": pool.instance_type}
    return replace(
        a_node(name, capacity="spot", zone=pool.zone, labels=labels, **how), created=created
    )


def test_a_pool_that_has_stood_for_long_is_reclaimed_seldom_by_age_and_by_count():
    assert rate_by_age(0) == pytest.approx(24 / (24.5 * 0.5 * 3.8918), rel=1e-4)
    assert rate_by_counts(2, 98) == pytest.approx(0.03)
    assert rate([], held(60 * DAY, 242)).per_hour == pytest.approx(0.0017, abs=5e-5)
    assert rate([], held(10 * DAY, 152)).per_hour < rate([], held(36 * HOUR, 33)).per_hour
    reclaimed = rate([befell(2 * HOUR)], held(10 * DAY, 152))
    assert reclaimed.stood_hours == pytest.approx(2)
    assert reclaimed.per_hour > 3 * rate([], held(10 * DAY, 152)).per_hour


@given(
    younger=st.floats(0, 2000),
    days=st.floats(0, 2000),
    reclaims=st.floats(0, 50),
    hours=st.floats(0, 242),
)
def test_the_rate_falls_with_age_and_hours_and_rises_with_reclaims(younger, days, reclaims, hours):
    assert rate_by_age(younger + days) <= rate_by_age(younger)
    assert rate_by_counts(reclaims, hours) <= rate_by_counts(reclaims + 1, hours)
    assert rate_by_counts(reclaims, hours + 1) <= rate_by_counts(reclaims, hours)


def test_a_reclaim_and_an_hour_lose_half_of_their_weight_in_each_half_life():
    assert rate([befell(HALF_LIFE)]).reclaims == pytest.approx(0.5)
    week_old = replace(held(60 * DAY, 200), at=NOON - HALF_LIFE)
    assert rate([], week_old).held_hours == pytest.approx(100)


def test_only_a_pool_that_is_held_grows_older():
    assert rate([befell(8 * HOUR)]).stood_hours == 0
    assert rate([], replace(held(DAY, 20), at=NOON - UNBROKEN)).stood_hours == 24
    assert rate([], replace(held(DAY, 20), at=NOON - UNBROKEN - HOUR)).stood_hours == 0


@pytest.mark.parametrize("kind", [PoolEventKind.REBALANCE, PoolEventKind.REFUSAL])
def test_advice_and_refusals_set_a_pool_aside_for_ten_minutes_and_do_not_enter_its_rate(kind):
    told = [befell(MERGED - timedelta(seconds=1), kind)]
    assert set_aside(told, NOON) == {M5}
    assert set_aside([befell(MERGED, kind)], NOON) == set()
    assert reclaim_rates(told, [], NOON) == {}
    row = held(DAY, 20)
    assert rate(told, row) == rate([], row)
    assert ranks_of(PoolMemory(told, [row]), NOON) == {M5: inf}


def test_a_launch_sets_nothing_aside():
    assert ranks_of(PoolMemory([befell(timedelta(), PoolEventKind.LAUNCH)]), NOON) == {}


@given(
    minutes=st.lists(st.integers(0, 40_000), max_size=12),
    again=st.lists(st.integers(0, 11), max_size=6),
    shuffle=st.randoms(use_true_random=False),
)
def test_events_told_twice_late_and_in_another_order_lead_to_the_same_rate(minutes, again, shuffle):
    told = [befell(timedelta(minutes=each)) for each in minutes]
    anyhow = told + [told[each] for each in again if each < len(told)]
    shuffle.shuffle(anyhow)
    row = held(20 * DAY, 180)
    assert rate(anyhow, row) == rate(told, row)


def test_what_many_instances_tell_within_ten_minutes_is_one_reclaim_whatever_the_clock_shows():
    at = datetime.fromtimestamp(NOON.timestamp() // 600 * 600, NOON.tzinfo) - HOUR
    storm = [replace(befell(HOUR), at=at + timedelta(seconds=s)) for s in (-60, 0, 60, 590)]
    assert rate(storm).reclaims == pytest.approx(
        rate([storm[0], replace(storm[3], at=storm[0].at)]).reclaims + rate([storm[3]]).reclaims
    )


def test_an_event_of_the_future_changes_nothing_yet():
    assert reclaim_rates([befell(-HOUR)], [], NOON) == {}


# --- Hours -----------------------------------------------------------------------------------------


def count(known: Sequence[HeldPool], nodes: Sequence[Node], at: datetime) -> list[HeldPool]:
    """Return all rows after the hours of these nodes were counted."""
    rows = {each.pool: each for each in known}
    for before, after in counted_hours(known, nodes, at):
        assert rows.get(after.pool) == before
        rows[after.pool] = after
    return [*rows.values()]


def test_an_hour_of_a_pool_counts_once_whoever_and_how_often_it_is_told():
    nodes = [spot("a"), spot("b")]
    (row,) = once = count([], nodes, NOON)
    assert (row.hours, row.at) == (1, NOON)
    for again in (timedelta(), timedelta(minutes=59), -HOUR):
        assert count(once, nodes, NOON + again) == once
    (later,) = count(once, nodes, NOON + HOUR)
    assert later.hours == pytest.approx(2, abs=0.01)


def test_a_pool_is_as_old_as_the_oldest_node_that_stands_in_it():
    nodes = [spot("a"), spot("b", created=NOON - 10 * DAY)]
    (row,) = count([], nodes, NOON)
    assert row.since == NOON - 10 * DAY
    (kept,) = count([row], [spot("a")], NOON + HOUR)
    assert kept.since == NOON - 10 * DAY


def test_a_break_begins_its_age_anew_unless_a_node_stood_all_the_while():
    (row,) = count([], [spot("a", created=NOON - DAY)], NOON)
    later = NOON + UNBROKEN + HOUR
    (anew,) = count([row], [spot("b", created=later)], later)
    assert anew.since == later
    assert anew.hours == pytest.approx(2, abs=0.02)
    (stood,) = count([row], [spot("a", created=NOON - DAY)], later)
    assert stood.since == NOON - DAY


def test_only_spot_nodes_that_stand_count_and_their_pools_are_told_apart():
    nodes = [
        spot("a"),
        spot("b", CapacityPool("m5.xlarge", ZONE_B, "spot")),
        spot("c", R5, ready=False),
        a_node("od", labels={"node.kubernetes.io/instance-type": "c5.large"}),
        a_node("bare", capacity="spot"),
    ]
    assert sorted(row.pool.zone for row in count([], nodes, NOON)) == [ZONE_A, ZONE_B]


def test_a_region_has_no_more_pools_than_are_counted_and_those_go_on():
    many = [spot(f"n{n}", CapacityPool(f"m{n}.large", ZONE_A, "spot")) for n in range(310)]
    rows = count([], many, NOON)
    assert len(rows) == MOST_POOLS
    after = count(rows, many, NOON + HOUR)
    assert len(after) == MOST_POOLS
    assert all(row.at == NOON + HOUR for row in after)


@given(hours=st.lists(st.integers(0, 40), min_size=1, max_size=30))
def test_runs_that_come_late_or_out_of_order_never_count_an_hour_twice(hours):
    rows: list[HeldPool] = []
    for hour in hours:
        rows = count(rows, [spot("a")], NOON + hour * HOUR)
    total = sum(row.hours for row in rows)
    assert total <= len(set(hours)) + 1e-9
    if hours == sorted(hours):
        assert total > 0.8 * len(set(hours))


# --- Which group is asked --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "chosen"),
    [
        ({}, "m5"),
        ({R5: 0.006}, "r5"),  # what was never seen is not counted on
        ({M5: 0.08, R5: 0.006}, "r5"),
        ({M5: 0.006, R5: 0.08}, "m5"),
        ({M5: inf, R5: 0.9}, "r5"),
        ({M5: inf, R5: inf}, "m5"),
        ({M5: 0.0061, R5: 0.006}, "m5"),  # so small a difference decides nothing
    ],
)
def test_of_spot_groups_the_calmest_is_asked_and_as_last_resort_any(known, chosen):
    groups = [
        replace(a_group(name, capacity="spot", zones=[ZONE_A]), instance_types=(f"{name}.xlarge",))
        for name in ("m5", "r5")
    ]
    plan = plan_growth(
        ClusterSnapshot([], []), [a_pod()], groups, upcoming={}, now=NOON, pools=known
    )
    assert [growth.group.name for growth in plan.growths] == [chosen]


def test_a_pool_whose_sibling_is_reclaimed_now_is_ranked_behind_others():
    group = replace(a_group(capacity="spot", zones=[ZONE_A]), instance_types=("m5.xlarge",))
    other = CapacityPool("m5.xlarge", ZONE_B, "spot")
    assert rate_of(group, ZONE_A, (), {}) == NEVER_SEEN
    assert rate_of(group, ZONE_A, [other], {}) == NEVER_SEEN + 0.4
    assert rate_of(group, ZONE_A, [M5], {}) == 2.0


def test_on_demand_comes_first_whatever_is_known_of_spot_pools():
    base = replace(a_group(zones=[ZONE_A]), instance_types=("m5.xlarge",))
    spot_group = replace(a_group("r5", capacity="spot", zones=[ZONE_A]), instance_types=(R5[0],))
    plan = plan_growth(
        ClusterSnapshot([], []), [a_pod()], [base, spot_group], upcoming={}, now=NOON, pools={R5: 0}
    )
    assert [growth.group.name for growth in plan.growths] == ["base"]
