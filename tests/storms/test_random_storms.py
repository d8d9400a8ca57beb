"""Random storms keep every rule: ten for every change, twelve hundred for `make test-long`.

The seeds are fixed, so a change is judged by its effect, not by luck. `plimsoll storms` plays
any others; docs/develop/testing.md says how to treat a seed that breaks a rule.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll_simulation.storms import Storm, StormResult, draw_storm, play_storm, read_storm
from tests.support.properties import IN_TEST_LONG, drawn
from tests.support.storms import storms

FEW, MANY = 10, range(1200)


def _play(seed: int) -> StormResult:
    return play_storm(draw_storm(seed))


def broken(first: int, count: int) -> dict[int, list[str]]:
    """Play so many seeds; return those that broke a rule."""
    # Separate processes use both cores, and coverage does not slow them down.
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        results = list(pool.map(_play, range(first, first + count), chunksize=5))
    assert sum(v.playable for v in results) >= 0.9 * count
    return {
        v.seed: [f"{x.rule} at {x.seconds:g} s: {x.what}" for x in v.violations]
        for v in results
        if v.violations
    }


def test_ten_random_storms_keep_every_rule():
    assert broken(0, FEW) == {}


@pytest.mark.long
@pytest.mark.parametrize("first", MANY[::200])
def test_twelve_hundred_random_storms_keep_every_rule(first: int):
    assert broken(first, 200) == {}


@pytest.mark.long
@pytest.mark.parametrize("first", MANY[::200])
def test_two_executors_at_once_end_as_one_does(first: int):
    results = [play_storm(draw_storm(seed), twice=True) for seed in range(first, first + 10)]
    differ = [x for v in results for x in v.violations if x.rule.startswith("differs")]
    assert differ == []


@drawn(10, many=300)
@given(storm=st.booleans().flatmap(lambda small: storms(small=small or not IN_TEST_LONG)))
def test_whatever_hypothesis_draws_keeps_every_rule(storm: Storm):
    assert play_storm(storm).violations == ()


@drawn(30, many=300)
@given(storm=st.booleans().flatmap(lambda small: storms(small=small)))
def test_every_storm_that_is_drawn_is_a_valid_drill(storm: Storm):
    assert read_storm(storm).scenario.name == storm.name
    assert storm.nodes <= 32
    assert storm.events
