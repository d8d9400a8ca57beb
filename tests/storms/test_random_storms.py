"""Random storms keep every rule: sixty for every change, twelve hundred for `make test-long`.

The seeds are fixed, so a change is judged by its effect, not by luck. `plimsoll storms` plays
any others; docs/develop/testing.md says how to treat a seed that breaks a rule.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.domain.actions import Pace
from plimsoll.domain.drain import planner
from plimsoll.domain.drain.throughput import AT_ONCE
from plimsoll_testbed.storms import Storm, StormResult, draw_storm, play_storm, read_storm
from tests.support.storms import storms

FEW, FEWER, MANY = 60, 20, range(1200)


def _play(seed: int) -> StormResult:
    return play_storm(draw_storm(seed))


def _play_evicting_first(seed: int) -> StormResult:
    """Play a storm as if all its replacements came too late: see `plimsoll.domain.drain.evict_first`."""
    with pytest.MonkeyPatch.context() as patch:
        late = dict.fromkeys(map(str, range(AT_ONCE + 1)))
        patch.setattr(planner, "too_late", lambda *_: late)
        patch.setattr(Pace, "keeps_up", True)
        return _play(seed)


def broken(
    first: int, count: int, play: Callable[[int], StormResult] = _play
) -> dict[int, list[str]]:
    """Play so many seeds; return those that broke a rule."""
    # Separate processes use both cores, and coverage does not slow them down.
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        results = list(pool.map(play, range(first, first + count), chunksize=5))
    assert sum(v.playable for v in results) >= 0.9 * count
    assert any(v.judged for v in results)
    return {
        v.seed: [f"{x.rule} at {x.seconds:g} s: {x.what}" for x in v.violations]
        for v in results
        if v.violations
    }


def test_sixty_random_storms_keep_every_rule():
    assert broken(0, FEW) == {}


def test_random_storms_keep_every_rule_if_pods_are_evicted_first():
    assert broken(0, FEWER, _play_evicting_first) == {}


def test_whose_spread_keeps_it_out_of_every_other_zone_once_it_has_left_is_not_evicted_first():
    assert _play_evicting_first(1047).violations == ()


@pytest.mark.long
@pytest.mark.parametrize("first", MANY[::200])
def test_twelve_hundred_random_storms_keep_every_rule(first: int):
    assert broken(first, 200) == {}


@pytest.mark.long
@pytest.mark.parametrize("first", MANY[::200])
def test_twelve_hundred_random_storms_keep_every_rule_if_pods_are_evicted_first(first: int):
    assert broken(first, 200, _play_evicting_first) == {}


@pytest.mark.long
@pytest.mark.parametrize("first", MANY[::200])
def test_two_executors_at_once_end_as_one_does(first: int):
    results = [play_storm(draw_storm(seed), twice=True) for seed in range(first, first + 10)]
    differ = [x for v in results for x in v.violations if x.rule.startswith("differs")]
    assert differ == []


@given(storm=storms())
@settings(max_examples=20, deadline=None, derandomize=True)
def test_whatever_hypothesis_draws_keeps_every_rule(storm: Storm):
    assert play_storm(storm).violations == ()


@pytest.mark.long
@given(storm=st.booleans().flatmap(lambda small: storms(small=small)))
@settings(max_examples=300, deadline=None)
def test_whatever_hypothesis_draws_for_long_keeps_every_rule(storm: Storm):
    assert play_storm(storm).violations == ()


@given(storm=st.booleans().flatmap(lambda small: storms(small=small)))
@settings(max_examples=30, deadline=None)
def test_every_storm_that_is_drawn_is_a_valid_drill(storm: Storm):
    assert read_storm(storm).scenario.name == storm.name
    assert storm.nodes <= 32
    assert storm.events
