"""What pods that share a GPU cost one another, beside what an H100 showed (docs/guides/gpu.md)."""

from __future__ import annotations

import pytest

from plimsoll_service.domain.gpu.time_slicing import slowdown

MOST_OFF = 0.16
"""The measured figures vary that much between small and large kernels."""


@pytest.mark.parametrize(
    ("processes", "duty", "measured"),
    [
        (1, 1.0, (1.00, 1.00)),
        (3, 1.0, (3.15, 3.41)),
        (7, 1.0, (7.38, 7.90)),
        (2, 0.5, (1.68, 1.66)),
        (4, 0.5, (3.29, 3.65)),
        (2, 0.1, (1.30, 1.22)),
        (4, 0.1, (1.64, 1.53)),
        (7, 0.1, (2.18, 2.52)),
    ],
)
def test_the_model_is_near_what_was_measured(processes, duty, measured):
    for each in measured:
        assert slowdown([duty] * (processes - 1)) == pytest.approx(each, rel=MOST_OFF)


def test_pods_that_never_compute_slow_nobody_down():
    assert slowdown([0.0, 0.0]) == 1
