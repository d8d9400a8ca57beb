"""Geometries of a card, and the fewest GPUs that hold a demand."""

from __future__ import annotations

import random
from itertools import product

import pytest

from plimsoll.domain.errors import BadInput
from plimsoll_service.domain.gpu import CARDS
from plimsoll_service.domain.gpu.geometry import (
    Counts,
    MigGeometries,
    feasible,
    geometries_of,
    mig_geometries,
)
from tests.support.exact_geometry import fewest_by_solver, optima

H100 = geometries_of(CARDS["H100-80GB-HBM3"])
RTX = geometries_of(CARDS["RTX-PRO-6000-Blackwell-Server-Edition"])
SINGLE = tuple(p for n, p in CARDS["H100-80GB-HBM3"].profiles.items() if n != "1g.20gb")
PLAIN = mig_geometries(SINGLE, 8)
"""A card of seven slices without the 1g of double memory."""


def in_facts(d1: int, d2: int, d3: int, d4: int, double: int = 0) -> int:
    bounds = (
        (d4, 1),
        (2 * d4 + d3 + d2, 3),
        (4 * d4 + 3 * d3 + 2 * d2 + d1 + double, 7),
        (4 * d4 + 4 * d3 + 2 * d2 + d1 + 2 * double, 8),
    )
    return max(-(-above // below) for above, below in bounds)


def test_a_card_of_seven_slices_has_37_geometries_of_which_12_are_maximal():
    assert len(feasible(SINGLE, 8) - {(0,) * 5}) == 37
    assert len(PLAIN.maximal) == 12 + 1  # and the whole GPU


def test_the_1g_of_double_memory_makes_it_28():
    assert len(H100.maximal) == 28 + 1


@pytest.mark.parametrize("model", ["A30", "RTX-PRO-6000-Blackwell-Server-Edition"])
def test_a_card_of_four_slices_has_4(model: str):
    assert len(geometries_of(CARDS[model]).maximal) == 4 + 1


def test_a_card_without_mig_has_whole_gpus_only():
    assert geometries_of(CARDS["L4"]).names == ("gpu",)
    assert geometries_of(CARDS["L4"]).needed((9,)) == 9


@pytest.mark.parametrize("model", [m for m, card in CARDS.items() if card.profiles])
def test_no_geometry_takes_more_compute_slices_than_the_card_has(model: str):
    card = CARDS[model]
    compute = [profile.compute for profile in card.profiles.values()]
    for geometry in feasible(tuple(card.profiles.values()), card.memory):
        assert sum(a * b for a, b in zip(geometry, compute, strict=True)) <= card.compute


@pytest.mark.parametrize("each", [H100, PLAIN, RTX])
def test_no_geometry_is_worth_more_than_one_gpu_in_any_bound(each: MigGeometries):
    for size, covered in each.bounds:
        for geometry in each.maximal:
            assert sum(a * b for a, b in zip(covered, geometry, strict=True)) <= size


def test_only_the_four_bounds_of_seven_slices_and_the_one_of_four_are_left():
    assert len(H100.bounds) == len(PLAIN.bounds) == 4
    assert len(RTX.bounds) == 1


def test_the_bound_is_the_exact_optimum_for_each_demand_up_to_ten_on_seven_slices():
    for (d1, d2, d3, d4), best in optima(PLAIN, (10, 10, 10, 10)).items():
        assert PLAIN.needed((0, d1, d2, d3, d4, 0)) == best == in_facts(d1, d2, d3, d4)
        assert PLAIN.needed((2, d1, d2, d3, d4, 1)) == best + 3


@pytest.mark.long
def test_the_bound_is_the_exact_optimum_for_each_demand_up_to_six_with_double_memory():
    for (d1, dd, d2, d3, d4), best in optima(H100, (6, 6, 6, 6, 6)).items():
        assert H100.needed((0, d1, dd, d2, d3, d4, 0)) == best == in_facts(d1, d2, d3, d4, dd)


def test_the_bound_is_the_exact_optimum_for_each_demand_up_to_ten_on_four_slices():
    for (d1, d2), best in optima(RTX, (10, 10)).items():
        assert RTX.needed((0, d1, d2, 3)) == best + 3 == 3 + -(-(2 * d2 + d1) // 4)


def check(each: MigGeometries, demand: Counts) -> None:
    """A plan proves itself: it holds the demand on as many GPUs as the bound says."""
    plan = each.fewest(demand)
    assert plan.total() == each.needed(demand)
    given = [sum(g[i] * n for g, n in plan.items()) for i in range(len(demand))]
    assert all(have >= want for have, want in zip(given, demand, strict=True))
    assert set(plan) <= set(each.maximal)


@pytest.mark.long
def test_each_demand_up_to_ten_has_a_plan_that_meets_its_bound():
    for d in product(range(11), repeat=4):
        check(PLAIN, (0, *d, 0))
    for d in product(range(11), repeat=3):
        check(RTX, (0, *d))


@pytest.mark.parametrize("each", [H100, PLAIN, RTX], ids=["double", "seven", "four"])
@pytest.mark.parametrize("seed", range(60))
def test_a_plan_meets_its_bound(each: MigGeometries, seed: int):
    draw = random.Random(seed)
    most = draw.choice([3, 10, 100, 2000])
    check(each, tuple(draw.randint(0, most) for _ in each.names))


@pytest.mark.parametrize("seed", range(120))
def test_a_fleet_of_up_to_2268_gpus_needs_no_fewer_than_the_solver_says(seed: int):
    draw = random.Random(seed)
    most = draw.choice([30, 100, 500, 1000])
    demand = (0, *(draw.randint(0, most) for _ in PLAIN.names[1:]))
    assert PLAIN.needed(demand) == fewest_by_solver(PLAIN, demand)


def test_where_no_geometry_lowers_the_bound_it_searches_and_takes_one_gpu_more():
    # Without its other bounds a card looks as if 3g and 4g cost their compute slices only.
    loose = MigGeometries(names=PLAIN.names, maximal=PLAIN.maximal, bounds=PLAIN.bounds[2:3])
    demand = (0, 0, 0, 7, 0, 0)
    assert loose.needed(demand) == 3
    assert loose.fewest(demand).total() == 4


@pytest.mark.parametrize("name", ["1g.10gb+me", "1g.10gb+gfx", "2g.20gb+me.all"])
def test_profiles_with_media_extensions_or_graphics_are_refused_by_name(name: str):
    with pytest.raises(BadInput, match=rf"{name[:7]}\+.* limited .* plan with {name[:7]}"):
        H100.counts({name: 1})


@pytest.mark.parametrize(("demand", "said"), [({"1g.5gb": 1}, "no such"), ({"gpu": -1}, "-1")])
def test_a_demand_that_no_card_has_is_refused(demand: dict[str, int], said: str):
    with pytest.raises(BadInput, match=said):
        H100.counts(demand)
