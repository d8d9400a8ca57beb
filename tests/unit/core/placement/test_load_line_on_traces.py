"""What the load line foretells of drawn spot markets, and what came."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Final

import pytest

from benchmarks.spot_traces import DAY, Played, dealt, recordings
from plimsoll.domain.capacity import StartWindow
from plimsoll.domain.placement.load_line import LossWindow
from plimsoll.domain.placement.spread_groups import Layout
from plimsoll_simulation.fake_aws.spot_market import MARKETS, Change, MarketPool

FAMILIES, ZONES = ("c5", "m5", "r5"), ("us-east-1a", "us-east-1b", "us-east-1c")
SLOW: Final = LossWindow.of(StartWindow(start_seconds=170, node_seconds=70, stop_seconds=10))
IN_TIME: Final = LossWindow(after_notice_seconds=0, without_notice_seconds=0)
LAYOUTS: Final = (Layout(0, 3), Layout(1, 3), Layout(3, 3))
KEEP: Final = (6, 8, 10)
LEARNED: Final = 7
"""Days until which rates are learned."""


def compared(market: str, seed: int, layout: Layout, days: int) -> Counter[tuple[str, int]]:
    """Return for how many days fewer than so many pods were predicted to be Ready, and for how many they were."""
    played = Played(MARKETS[market].draw(seed, days, FAMILIES, ZONES), 10, SLOW, layout, seed)
    found = Counter[tuple[str, int]]()
    for day in range(days):
        said = played.day(KEEP)
        if day >= LEARNED:
            for keep in KEEP:
                came = played.below(keep, day * DAY, (day + 1) * DAY) / DAY
                found["predicted", keep] += said[keep]  # type: ignore[assignment]  # floats too
                found["came", keep] += came  # type: ignore[assignment]  # floats too
    return found


@pytest.mark.parametrize(
    ("market", "least", "most"),
    [
        # The rate is the mean of a day until the first reclaim: where several come in a day, it is too low.
        ("storm", 0.3, 1.0),
        ("rough", 0.6, 1.5),
        ("calm", 0.9, 5.0),
        ("still", 0.9, 5.0),
    ],
)
@pytest.mark.long
def test_the_load_line_foretells_what_comes_in_a_calm_market_and_half_of_it_in_a_stormy_one(
    market, least, most
):
    for layout in LAYOUTS:
        both = Counter[tuple[str, int]]()
        for seed in range(1, 5):
            both += compared(market, seed, layout, days=60)
        for keep in (8, 10):
            predicted, came = both["predicted", keep], both["came", keep]
            if came > 0.01:  # below a quarter of an hour in all, a single loss decides
                assert least <= predicted / came <= most, (layout, keep, predicted, came)


def test_in_a_rough_market_the_load_line_foretells_what_comes():
    found = compared("rough", 1, Layout(1, 3), days=21)
    for keep in (8, 10):
        assert 0.5 <= found["predicted", keep] / found["came", keep] <= 2


def test_the_floor_is_never_undercut_and_what_is_replaced_in_time_is_never_missing():
    trace = MARKETS["storm"].draw(1, 10, FAMILIES, ZONES)
    late, in_time = Played(trace, 10, SLOW, Layout(3, 3)), Played(trace, 10, IN_TIME, Layout(0, 3))
    late.play(10 * DAY)
    in_time.play(10 * DAY)
    assert late.reclaims > 50
    assert late.below(4) == 0
    assert in_time.below(10) == 0
    assert in_time.cost() < late.cost() < 1


@pytest.mark.parametrize(
    ("pools", "groups"),
    [
        ((("c5", "a"), ("c5", "b"), ("m5", "a"), ("r5", "a")), [2, 1, 1]),
        ((("c5", "a"), ("c5", "b"), ("c5", "c"), ("c5", "d")), [2, 1, 1]),
        ((("c5", "a"),), [1]),
    ],
)
def test_groups_are_whole_families_or_zones_where_there_are_too_few(pools, groups):
    found = dealt([MarketPool(*pool) for pool in pools])
    assert [len(group) for group in found] == groups


def test_recordings_are_read_from_their_folders(tmp_path):
    counts: Sequence[int] = [0, 4, 4, 0, 1]
    (tmp_path / "lab").mkdir()
    file = tmp_path / "lab" / "us-east-1a_v100_1.json"
    file.write_text(json.dumps({"metadata": {"gap_seconds": 600}, "data": counts}))
    (lab,) = recordings(tmp_path, {"lab": 300})
    assert (lab.name, lab.days) == ("lab", 1500 / DAY)
    assert lab.trace == {
        MarketPool("us-east-1 v100_1", "us-east-1a"): [
            Change(0, up=False),
            Change(300, up=True),
            Change(900, up=False),
            Change(1200, up=True),
        ]
    }
