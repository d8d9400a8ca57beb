"""Layouts of nodes, their names, and the configuration of mig-parted."""

from __future__ import annotations

import re

import pytest

from plimsoll_service.domain.gpu import (
    CARDS,
    Choice,
    cheapest_cards,
    geometries_of,
    layout_name,
    layout_of,
    mig_config,
    pair_layouts,
    supply,
)
from plimsoll_service.domain.gpu.geometry import mig_geometries

H100 = geometries_of(CARDS["H100-80GB-HBM3"])
PLAIN = mig_geometries(
    tuple(p for n, p in CARDS["H100-80GB-HBM3"].profiles.items() if n != "1g.20gb"), 8
)
MIG = PLAIN.maximal[1:]
"""The twelve geometries, without the whole GPU."""
A_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def test_a_node_of_eight_has_474_layouts_of_at_most_two_geometries():
    assert len(MIG) == 12
    assert len(set(pair_layouts(MIG, 8))) == 474


@pytest.mark.parametrize("model", [m for m, card in CARDS.items() if card.profiles])
def test_each_pair_has_a_name_of_its_own_that_is_a_label_and_says_its_layout(model: str):
    each = geometries_of(CARDS[model])
    layouts = pair_layouts(each.maximal, 8)
    names = [layout_name(each, layout) for layout in layouts]
    assert len(set(names)) == len(layouts)
    assert all(A_LABEL.fullmatch(name) for name in names)
    assert [layout_of(each, name, 8) for name in names] == layouts


def test_a_name_too_long_for_a_label_is_a_hash_that_says_nothing():
    layout = tuple(H100.maximal[1:9])
    name = layout_name(H100, layout)
    assert re.fullmatch(r"7g\.80gb\.[0-9a-f]{12}", name)
    assert layout_of(H100, name, 8) is None


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("all-disabled", {"gpu": 8}),
        ("all-1g.10gb", {"1g.10gb": 56}),
        ("all-1g.20gb", {"1g.20gb": 32}),
        ("all-3g.40gb", {"3g.40gb": 16}),
        ("all-balanced", {"1g.10gb": 16, "2g.20gb": 8, "3g.40gb": 8}),
        ("7g.80gb.3g-1gx4", {"1g.10gb": 32, "3g.40gb": 8}),
        ("7g.80gb.5-of-3gx2.3-of-gpu", {"3g.40gb": 10, "gpu": 3}),
    ],
)
def test_names_of_ours_and_of_nvidia_are_read(name: str, given: dict[str, int]):
    layout = layout_of(H100, name, 8)
    assert layout is not None
    assert H100.by_name(supply(layout)) == given


@pytest.mark.parametrize(
    "name", ["", "custom", "7g.40gb.7gx1", "7g.80gb.9-of-7g", "7g.80gb.3-of-7g", "7g.80gb.5gx2"]
)
def test_other_names_are_not_guessed(name: str):
    assert layout_of(H100, name, 8) is None


def test_a_layout_is_a_configuration_of_mig_parted():
    layout = layout_of(H100, "7g.80gb.5-of-3g-1gx4.3-of-gpu", 8)
    assert layout is not None
    assert mig_config(H100, layout) == [
        {
            "devices": [0, 1, 2, 3, 4],
            "mig-enabled": True,
            "mig-devices": {"1g.10gb": 4, "3g.40gb": 1},
        },
        {"devices": [5, 6, 7], "mig-enabled": False},
    ]


def test_each_class_takes_the_card_whose_slice_costs_the_least():
    classes = [
        Choice(pods=7, slices={"H100-80GB-HBM3": "1g.10gb", "L4": "gpu"}),
        Choice(pods=2, slices={"H100-80GB-HBM3": "3g.40gb", "L40S": "gpu"}),
        Choice(pods=3, slices={"L4": "gpu"}),
    ]
    prices = {"H100-80GB-HBM3": 4.2, "L4": 0.8, "L40S": 1.9}
    assert cheapest_cards(classes, CARDS, prices) == {
        "H100-80GB-HBM3": {"1g.10gb": 7},
        "L40S": {"gpu": 2},
        "L4": {"gpu": 3},
    }
