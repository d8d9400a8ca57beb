"""What a count of overflows proves."""

from __future__ import annotations

import pytest

from plimsoll_service.domain.gpu.bounds import still_needed, upper_bound


@pytest.mark.parametrize(
    ("over", "judged", "most"),
    [
        (0, 111, 1 - 0.05 ** (1 / 111)),
        (0, 299, 0.00997),
        (1, 109, 0.0428),
        (3, 111, 0.0684),
        (5, 50, 0.1988),
        (0, 0, 1.0),
        (7, 7, 1.0),
    ],
)
def test_the_bound_is_that_of_clopper_and_pearson(over: int, judged: int, most: float):
    assert upper_bound(over, judged) == pytest.approx(most, abs=6e-5)


def test_299_clean_ones_prove_one_percent_and_298_do_not():
    assert still_needed(0, 299, 0.01) == 0
    assert still_needed(0, 298, 0.01) == 1
    assert still_needed(0, 0, 0.01) == 299


def test_one_overflow_asks_for_473_in_all():
    assert still_needed(1, 100, 0.01) == 373


def test_a_million_pods_are_no_trouble():
    assert upper_bound(200, 10**6) == pytest.approx(0.000226, abs=2e-6)
