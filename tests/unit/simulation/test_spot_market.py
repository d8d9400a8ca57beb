"""Spot markets that are drawn: the same seed draws the same one, and each is as rough as it is named."""

from __future__ import annotations

import pytest

from plimsoll_simulation.fake_aws.spot_market import MARKETS, Change, MarketPool, figures, is_up

FAMILIES, ZONES, DAYS = ("c5", "m5", "r5"), ("us-east-1a", "us-east-1b", "us-east-1c"), 90
KNOWN = {
    "storm": [
        (9140, 0.5823, 0.8075, 0.072),
        (9137, 0.5783, 0.8128, 0.068),
        (9365, 0.5714, 0.8430, 0.072),
    ],
    "rough": [
        (1794, 0.9204, 0.1003, 0.159),
        (1842, 0.9149, 0.1036, 0.157),
        (1775, 0.9146, 0.0998, 0.153),
    ],
    "calm": [
        (319, 0.9750, 0.0168, 0.119),
        (311, 0.9761, 0.0164, 0.154),
        (318, 0.9765, 0.0168, 0.242),
    ],
    "still": [
        (113, 0.9915, 0.0059, 0.221),
        (110, 0.9893, 0.0057, 0.182),
        (114, 0.9918, 0.0059, 0.211),
    ],
}
"""Losses, share available, losses an hour, and how likely a sibling is lost too, of the seeds 1, 2 and 3."""
FIRST = {
    "storm": (2597, 2754),
    "rough": (15583, 15968),
    "calm": (205727, 209709),
    "still": (36073, 36119),
}
"""Of the seed 1, when the first pool is lost and when it is back."""


@pytest.mark.parametrize("name", MARKETS)
def test_a_market_has_its_figures_and_its_first_changes(name):
    for seed, known in enumerate(KNOWN[name], start=1):
        trace = MARKETS[name].draw(seed, DAYS, FAMILIES, ZONES)
        found = figures(trace, DAYS)
        shown = (round(found.available, 4), round(found.per_hour, 4), round(found.siblings, 3))
        assert (found.losses, *shown) == known
        if seed == 1:
            lost, back = FIRST[name]
            first = trace[MarketPool("c5", "us-east-1a")][:3]
            assert [*first] == [Change(0, up=True), Change(lost, up=False), Change(back, up=True)]


def test_a_pool_has_capacity_between_its_changes():
    changes = [Change(0, up=True), Change(10, up=False), Change(30, up=True)]
    assert [is_up(changes, second) for second in (0, 9.5, 10, 29, 30, 99)] == [
        True,
        True,
        False,
        False,
        True,
        True,
    ]
