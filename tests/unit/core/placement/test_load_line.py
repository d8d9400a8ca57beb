"""How much of a workload may stand on spot: the tail against brute force and a simulated process, and the layouts."""

from __future__ import annotations

from bisect import bisect_right
from itertools import product
from math import exp, inf
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.domain.capacity import StartWindow
from plimsoll.domain.placement.load_line import (
    FAMILY_SHARE,
    MISSED,
    REGION_SHARE,
    LossWindow,
    SpotGroup,
    Unit,
    at_most,
    lines,
    load_line,
    tail,
    units_of,
)

SLOW = LossWindow.of(StartWindow(start_seconds=170, node_seconds=70, stop_seconds=10))
FAST = LossWindow.of(StartWindow(start_seconds=20, node_seconds=70, stop_seconds=10))

rates = st.floats(0.0005, 2.0)
units = st.builds(Unit, pods=st.integers(1, 6), per_hour=rates)
windows = st.tuples(st.floats(0, 700), st.floats(0, 700)).map(
    lambda pair: LossWindow(after_notice_seconds=min(pair), without_notice_seconds=max(pair))
)


def calm(*per_hour: float) -> list[SpotGroup]:
    names = ("c6i", "m6i", "r6i", "c5", "m5")
    return [SpotGroup(name=n, family=n, per_hour=r) for n, r in zip(names, per_hour, strict=False)]


def enumerated(outcomes: list[list[tuple[float, int]]], slack: int) -> float:
    """Return the probability of more than `slack`, over every combination of outcomes."""
    total = 0.0
    for chosen in product(*outcomes):
        if sum(pods for _, pods in chosen) > slack:
            chance = 1.0
            for probability, _ in chosen:
                chance *= probability
            total += chance
    return total


def test_a_window_is_what_is_missing_after_a_notice_and_without_one():
    assert (SLOW.after_notice_seconds, SLOW.without_notice_seconds) == (134, 252)
    assert (FAST.after_notice_seconds, FAST.without_notice_seconds) == (0, 102)


@settings(max_examples=40, deadline=None)
@given(drawn=st.lists(units, max_size=10), seconds=st.floats(0, 900), slack=st.integers(0, 30))
def test_the_tail_is_the_sum_over_all_subsets_of_units(drawn, seconds, slack):
    window = LossWindow(after_notice_seconds=seconds, without_notice_seconds=seconds)
    outcomes = [
        [(exp(-u.per_hour * seconds / 3600), 0), (1 - exp(-u.per_hour * seconds / 3600), u.pods)]
        for u in drawn
    ]
    assert tail(drawn, window, slack) == pytest.approx(enumerated(outcomes, slack), abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    drawn=st.lists(st.builds(Unit, pods=st.integers(1, 3), per_hour=rates), max_size=4),
    window=windows,
    slack=st.integers(0, 12),
    missed=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
)
def test_nodes_without_a_notice_are_a_binomial_part_of_their_unit(drawn, window, slack, missed):
    outcomes = []
    for unit in drawn:
        recent = exp(-unit.per_hour * window.after_notice_seconds / 3600)
        none = exp(-unit.per_hour * window.without_notice_seconds / 3600)
        of_unit = [(none, 0), (1 - recent, unit.pods)]
        for pods in product((False, True), repeat=unit.pods):
            chance = recent - none
            for without in pods:
                chance *= missed if without else 1 - missed
            of_unit.append((chance, sum(pods)))
        outcomes.append(of_unit)
    found = tail(drawn, window, slack, missed)
    assert found == pytest.approx(enumerated(outcomes, slack), abs=1e-12)


@given(drawn=st.lists(units, min_size=1, max_size=8), window=windows, slack=st.integers(0, 20))
def test_the_tail_falls_in_slack_and_rises_in_rate_window_and_unit(drawn, window, slack):
    base, tolerance = tail(drawn, window, slack), 1e-12
    first, rest = drawn[0], drawn[1:]
    faster = Unit(pods=first.pods, per_hour=first.per_hour * 1.5)
    larger = Unit(pods=first.pods + 1, per_hour=first.per_hour)
    told = LossWindow(
        after_notice_seconds=(window.after_notice_seconds + window.without_notice_seconds) / 2,
        without_notice_seconds=window.without_notice_seconds,
    )
    untold = LossWindow(
        after_notice_seconds=window.after_notice_seconds,
        without_notice_seconds=window.without_notice_seconds + 60,
    )
    assert 0 <= base <= 1
    assert tail(drawn, window, slack + 1) <= base + tolerance
    assert tail([faster, *rest], window, slack) >= base - tolerance
    assert tail([larger, *rest], window, slack) >= base - tolerance
    assert tail([*drawn, first], window, slack) >= base - tolerance
    assert tail(drawn, told, slack) >= base - tolerance
    assert tail(drawn, untold, slack) >= base - tolerance
    assert tail(drawn, window, slack, missed=0.2) >= base - tolerance


def test_nothing_is_lost_within_a_window_of_nothing_and_what_cannot_be_kept_is_broken():
    unit = Unit(pods=3, per_hour=1)
    nothing = LossWindow(after_notice_seconds=0, without_notice_seconds=0)
    assert tail([unit], nothing, 0) == 0
    assert tail([unit], SLOW, -1) == 1
    assert tail([], SLOW, 0) == 0
    assert (
        tail([unit], LossWindow(after_notice_seconds=0, without_notice_seconds=600), 0, missed=0)
        == 0
    )


def simulated(parts: list[Unit], window: LossWindow, most: int, seed: int) -> list[float]:
    """Return the shares of the time in which more than 0, 1, ... pods are missing: a process of losses, sampled."""
    draw, hours, every = Random(seed), 60_000.0, 0.01
    told, untold = window.after_notice_seconds / 3600, window.without_notice_seconds / 3600
    of_units = []
    for unit in parts:
        at, losses = 0.0, list[tuple[float, int]]()
        while (at := at + draw.expovariate(unit.per_hour)) < hours:
            losses.append((at, sum(draw.random() < MISSED for _ in range(unit.pods))))
        of_units.append((unit, [each for each, _ in losses], losses))
    more, samples = [0] * most, int(hours / every)
    moments = {  # where nothing was lost lately nothing is missing
        int(at / every) + step
        for _, times, _ in of_units
        for at in times
        for step in range(1, int(untold / every) + 2)
    }
    for moment in moments:
        now, missing = moment * every, 0
        for unit, times, losses in of_units:
            last = bisect_right(times, now) - 1
            age = now - times[last] if last >= 0 else inf
            missing += unit.pods if age < told else losses[last][1] if age < untold else 0
        for slack in range(min(most, missing)):
            more[slack] += 1
    return [each / samples for each in more]


def test_the_tail_is_what_a_simulated_process_of_losses_shows():
    window = LossWindow(after_notice_seconds=300, without_notice_seconds=600)
    parts = [Unit(pods=n, per_hour=r) for n, r in ((2, 0.3), (2, 0.3), (1, 0.5), (4, 0.05))]
    shares = simulated(parts, window, 4, seed=7)
    for slack, share in enumerate(shares):
        tolerance = 0.02 if share > 0.01 else 0.06  # few events
        assert tail(parts, window, slack) == pytest.approx(share, rel=tolerance)


# --- Layouts ---------------------------------------------------------------------------------------


def test_common_shocks_leave_the_rate_of_each_group_as_it_is():
    groups = [(SpotGroup(name=f"g{n}", family="c6i", per_hour=0.1), 2) for n in range(3)]
    found = units_of(groups)
    assert [unit.pods for unit in found] == [2, 2, 2, 6, 6]
    assert [unit.per_hour for unit in found[3:]] == pytest.approx(
        [0.1 * FAMILY_SHARE, 0.1 * REGION_SHARE]
    )
    assert found[0].per_hour + found[3].per_hour + found[4].per_hour == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("per_hour", "minutes"),
    [
        (
            (0.0017, 0.0017, 0.006),
            {6: (0.3, 0.3, 0.3), 8: (15, 5.5, 0.3), 10: (19, 18, 17)},
        ),
        (
            (0.025, 0.08, 0.08),
            {6: (5.8, 5.7, 5.0), 8: (291, 168, 6.0), 10: (364, 352, 340)},
        ),
        (
            (0.3, 0.5, 0.5),
            {6: (76, 69, 36), 8: (2007, 1267, 82), 10: (2503, 2421, 2334)},
        ),
    ],
)
def test_minutes_a_month_of_ten_replicas_in_a_calm_a_rough_and_a_stormy_market(per_hour, minutes):
    for wanted, expected in minutes.items():
        *found, on_demand = lines(10, wanted, calm(*per_hour), SLOW)
        assert [str(line.layout) for line in found] == ["no floor", "1 + 3", "3 + 3"]
        assert [line.minutes_a_month for line in found] == pytest.approx(
            expected, rel=0.03, abs=0.05
        )
        assert (on_demand.below, on_demand.floor) == (0, 10)


def test_what_stays_if_all_spot_goes_and_what_it_costs():
    found = [*lines(10, 6, calm(0.01, 0.01, 0.01), SLOW)]
    assert [line.floor for line in found] == [0, 2, 4, 10]
    assert [line.cost for line in found] == pytest.approx([0.35, 0.48, 0.61, 1.0])


@pytest.mark.parametrize(
    ("replicas", "groups", "layouts"),
    [
        (1, 3, ["no floor", "on-demand"]),
        (2, 3, ["no floor", "1 + 1", "on-demand"]),
        (4, 3, ["no floor", "1 + 3", "3 + 1", "on-demand"]),
        (6, 2, ["no floor", "1 + 2", "3 + 2", "on-demand"]),
        (30, 5, ["no floor", "1 + 3", "3 + 3", "on-demand"]),
        (10, 0, ["on-demand"]),
    ],
)
def test_the_layouts_that_replicas_and_groups_allow(replicas, groups, layouts):
    found = [*lines(replicas, 1, calm(*[0.01] * groups), SLOW)]
    assert [str(line.layout) for line in found] == layouts


@given(
    replicas=st.integers(1, 40),
    share=st.floats(0.1, 1.0),
    hard=st.integers(0, 40),
    per_hour=st.lists(rates, max_size=5),
    broken=st.sampled_from([0.0, 0.0001, 0.001, 0.01, 0.1]),
)
@settings(deadline=None)
def test_the_line_keeps_the_promise_and_the_hard_floor_and_nothing_cheaper_does(
    replicas, share, hard, per_hour, broken
):
    hard, wanted = min(hard, replicas), max(1, int(share * replicas))
    found = [*lines(replicas, wanted, calm(*per_hour), SLOW)]
    line = load_line(found, hard, broken)
    assert line.floor >= hard
    assert line.below <= broken
    assert all(
        other.layout.floor(replicas) < hard or other.below > broken
        for other in found
        if other.cost < line.cost
    )


def test_the_calmer_the_pools_the_cheaper_the_layout():
    def chosen(per_hour: float) -> str:
        found = [*lines(10, 8, calm(*[per_hour] * 3), SLOW)]
        return str(load_line(found, 0, 0.001).layout)

    assert [chosen(r) for r in (0.001, 0.012, 0.05, 5.0)] == [
        "no floor",
        "1 + 3",
        "3 + 3",
        "on-demand",
    ]


def test_a_workload_that_starts_in_time_needs_no_floor():
    found = [*lines(10, 9, calm(0.02, 0.02, 0.02), FAST)]
    assert str(load_line(found, 0, 0.001).layout) == "no floor"


def test_a_promise_above_the_replicas_is_broken_by_every_layout():
    found = [*lines(3, 4, calm(0.01), SLOW)]
    assert {line.below for line in found} == {1.0}
    assert str(load_line(found, 0, 0.001).layout) == "on-demand"


@pytest.mark.parametrize(("mean", "reclaims"), [(0.3, 0.4), (1.43, 0.0), (12.0, 3.5)])
def test_in_nineteen_of_twenty_times_no_more_events_come_than_are_told(
    mean: float, reclaims: float
):
    random, shape, draws = Random(7), 1 + reclaims, 4_000
    most = at_most(mean, reclaims)
    came = [poisson(random, random.gammavariate(shape, mean / shape)) for _ in range(draws)]
    assert sum(n <= most for n in came) / draws >= 0.94
    assert most == 0 or sum(n < most for n in came) / draws < 0.96


def test_of_what_never_comes_nothing_comes():
    assert at_most(0.0, 3.0) == 0


def poisson(random: Random, mean: float) -> int:
    number, time = -1, 0.0
    while time <= mean:
        number, time = number + 1, time + random.expovariate(1)
    return number
