"""The layout of a promised workload: chosen at once, and changed seldom."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.capacity import StartWindow
from plimsoll.domain.kubernetes import Ref
from plimsoll.domain.placement import ChosenLayout, Layout, LossWindow, Promise, PromisedWorkload
from plimsoll.domain.placement.layout_choice import choose_layout
from plimsoll.domain.placement.load_line import (
    ALL_ON_DEMAND,
    NO_FLOOR,
    SpotGroup,
    lines,
    load_line,
    standing_line,
)
from plimsoll.domain.placement.spread_groups import NO_GROUPS
from tests.support.builders import NOON

WEB = Ref("Deployment", "shop", "web")
SLOW = StartWindow(start_seconds=170, node_seconds=70, stop_seconds=10)
CALM, ROUGH, STORM = (0.0017, 0.0017, 0.006), (0.025, 0.08, 0.08), (0.5, 1.0, 1.0)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@cache
def promised(
    rates: tuple[float, ...], text: str = "80%", *, replicas: int = 10, hard: int = 0
) -> PromisedWorkload:
    promise = Promise.parse(text)
    spot = tuple(SpotGroup(name=f"f{n}", family=f"f{n}", per_hour=r) for n, r in enumerate(rates))
    wanted, lost = promise.wanted(replicas), LossWindow.of(SLOW)
    layouts = tuple(lines(replicas, wanted, spot, lost))
    return PromisedWorkload(
        workload=WEB,
        replicas=replicas,
        wanted=wanted,
        declared=replicas,
        promise=promise,
        window=SLOW,
        layouts=layouts,
        line=load_line(layouts, hard, promise.broken),
        hard=hard,
        beneath=NO_GROUPS,
        spot=spot,
        stands=standing_line(replicas, wanted, [], lost),
    )


def after(
    rates: tuple[float, ...],
    before: ChosenLayout | None,
    now: datetime,
    there: Layout | None = None,
    **how,
) -> ChosenLayout:
    found = choose_layout(promised(rates, **how), before, there, now)
    assert found is not None
    return found


def hourly(rates: tuple[float, ...], before: ChosenLayout, hours: int, **how) -> ChosenLayout:
    """Return what is chosen after so many hours at these rates, looked at every hour."""
    began = before.at
    for hour in range(1, hours + 1):
        before = after(rates, before, began + hour * HOUR, **how)
    return before


def test_the_first_choice_is_the_load_line_at_once():
    assert after(ROUGH, None, NOON).layout == Layout(3, 3)
    assert after(STORM, None, NOON, text="100%").layout == ALL_ON_DEMAND
    assert after(ROUGH, None, NOON, text="60%").layout == NO_FLOOR
    assert after(ROUGH, None, NOON).changed is None


def test_it_goes_up_after_a_day_above_twice_the_bound_and_no_earlier():
    calm = after(CALM, None, NOON)
    assert calm.layout == NO_FLOOR
    nearly = hourly(ROUGH, calm, 24)
    assert (nearly.layout, nearly.above) == (NO_FLOOR, NOON + HOUR)
    assert hourly(ROUGH, calm, 25).layout == Layout(3, 3)


def test_a_calm_hour_between_lets_the_day_begin_anew():
    rough = hourly(ROUGH, after(CALM, None, NOON), 20)
    again = hourly(ROUGH, hourly(CALM, rough, 1), 24)
    assert (again.layout, again.above) == (NO_FLOOR, NOON + 22 * HOUR)


def test_it_goes_down_one_layout_after_seven_days_below_half_of_the_bound():
    high = after(ROUGH, None, NOON)
    assert hourly(CALM, high, 7 * 24).layout == Layout(3, 3)
    lower = hourly(CALM, high, 7 * 24 + 1)
    assert (lower.layout, lower.changed) == (Layout(1, 3), NOON + 7 * DAY + HOUR)
    assert hourly(CALM, lower, 7 * 24).layout == Layout(1, 3)
    assert hourly(CALM, lower, 7 * 24 + 1).layout == NO_FLOOR


def test_after_a_change_the_next_waits_for_a_week_whichever_way():
    calm = after(CALM, None, NOON)
    changed = hourly(ROUGH, calm, 25)
    assert (changed.layout, changed.changed) == (Layout(3, 3), NOON + 25 * HOUR)
    storm = hourly(STORM, changed, 7 * 24 - 1)
    assert (storm.layout, storm.above) == (Layout(3, 3), NOON + 26 * HOUR)
    assert hourly(STORM, storm, 1).layout == ALL_ON_DEMAND


def test_between_twice_and_half_of_the_bound_it_stays():
    chosen = ChosenLayout(promise=Promise.parse("80%"), layout=Layout(1, 3), at=NOON)
    rates = (0.01, 0.02, 0.02)
    below = promised(rates).keeps(Layout(1, 3)).below
    assert 0.001 < below < 0.002
    found = hourly(rates, chosen, 30 * 24)
    assert (found.layout, found.above) == (Layout(1, 3), None)


def test_a_new_promise_counts_at_once():
    calm = after(CALM, None, NOON)
    asked = after(CALM, calm, NOON + HOUR, text="100%, 99.999%")
    assert (asked.layout, asked.changed) == (ALL_ON_DEMAND, NOON + HOUR)


def test_a_layout_below_the_hard_floor_does_not_stand():
    calm = after(CALM, None, NOON)
    assert after(CALM, calm, NOON + HOUR, hard=3).layout == Layout(3, 3)
    assert after(CALM, calm, NOON + HOUR, hard=5).layout == ALL_ON_DEMAND


def test_more_than_all_replicas_and_a_cluster_without_spot_change_nothing():
    calm = after(CALM, None, NOON)
    for impossible in (promised((), "80%"), promised(STORM, "11")):
        assert choose_layout(impossible, calm, None, NOON + DAY) is calm
        assert choose_layout(impossible, None, None, NOON + DAY) is None


def test_what_is_seen_twice_or_late_leads_to_the_same_layout():
    calm = after(CALM, None, NOON)
    first = after(STORM, calm, NOON + HOUR)
    assert after(STORM, first, NOON + HOUR) == first
    assert after(STORM, replace(first, above=None), NOON) == replace(first, above=None)


def test_where_the_memory_is_lost_the_layout_that_objects_tell_stands():
    lost = after(CALM, None, NOON, there=Layout(3, 3))
    assert lost.layout == Layout(3, 3)
    assert hourly(CALM, lost, 7 * 24 - 1).layout == Layout(3, 3)
    assert hourly(STORM, after(STORM, None, NOON, there=NO_FLOOR), 23).layout == NO_FLOOR


def test_it_is_written_where_it_changed_and_once_a_week():
    calm = after(CALM, None, NOON)
    assert calm.is_due(None)
    assert not after(CALM, calm, NOON + HOUR).is_due(calm)
    assert after(ROUGH, calm, NOON + HOUR).is_due(calm)
    assert after(CALM, calm, NOON + 7 * DAY).is_due(calm)


@pytest.mark.drawn
@given(
    markets=st.lists(
        st.tuples(
            st.lists(st.floats(min_value=0.0005, max_value=2), min_size=0, max_size=3),
            st.integers(min_value=1, max_value=12 * 24),
        ),
        max_size=12,
    ),
    text=st.sampled_from(["50%", "60%", "80%", "90%, 99%", "10", "100%, 100%"]),
    replicas=st.integers(min_value=1, max_value=12),
    hard=st.integers(min_value=0, max_value=6),
    lost_at=st.none() | st.integers(min_value=0, max_value=40),
)
def test_whatever_the_market_does_a_layout_changes_once_a_week_and_the_hard_floor_stands(
    markets, text, replicas, hard, lost_at
):
    hard = min(hard, replicas)
    now, chosen, changes, lost = NOON, None, list[datetime](), NOON
    looks = [tuple(rates) for rates, hours in markets for _ in range(0, hours, 6)]
    for number, rates in enumerate(looks):
        now += 6 * HOUR
        there = None
        if number == lost_at and chosen is not None:  # the memory is lost, and the objects tell
            there, chosen, lost = chosen.layout, None, now
        each = promised(rates, text, replicas=replicas, hard=hard)
        found = choose_layout(each, chosen, there, now)
        if found is None:
            continue
        again = choose_layout(each, found, None, now)
        assert again is not None
        assert again.layout == found.layout
        stood = there if chosen is None else chosen.layout
        changes += [now] * (stood is not None and found.layout != stood)
        assert each.keeps_hard_floor(found.layout) or not each.spot
        chosen = found
    for earlier, later in pairwise(changes):
        assert later - earlier >= (DAY if earlier <= lost < later else 7 * DAY)
