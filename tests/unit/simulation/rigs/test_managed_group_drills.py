"""Beside EKS that drains its managed node groups: what the guard at a warning gains, and that nothing is worse than EKS alone.

Medians of six seeds stand in docs/guides/beside-karpenter.md; `python -m benchmarks.beside_karpenter --drainer eks
--runs 6` prints them. Here the first seed is played.
"""

from __future__ import annotations

import pytest

from benchmarks.beside_karpenter import BESIDE_EKS, played

GUARD = ", guard at a warning"
AT_ONCE = "notice, EKS evicts after 0 s"
SOON = "notice, EKS evicts after 2 s"
LATE = "notice, EKS evicts after 15 s"
ADVISED = "recommendation, no notice"
NO_SPOT = "recommendation, notice a minute later, no spot"
OF_OWN_BUDGET = 70
"""What `kept` loses at most, whose own budget lets EKS evict one pod at once."""


@pytest.mark.parametrize(
    ("situation", "gains"),
    [
        (AT_ONCE, False),
        (SOON, True),
        pytest.param("notice, EKS evicts after 5 s", True, marks=pytest.mark.long),
        pytest.param(LATE, True, marks=pytest.mark.long),
        (ADVISED, True),
        pytest.param(NO_SPOT, True, marks=pytest.mark.long),
    ],
)
def test_guarded_deployments_lose_nothing_unless_eks_evicts_before_plimsoll_looks(situation, gains):
    alone = played(BESIDE_EKS[situation], "none")
    beside, guarded = (played(BESIDE_EKS[situation + more], "plimsoll") for more in ("", GUARD))
    assert guarded.lost - 1 <= beside.lost <= alone.lost
    assert (guarded.lost <= OF_OWN_BUDGET, guarded.zero == 0) == (gains, gains)
    assert (beside.killed, guarded.killed) == (0, 0)


def test_every_situation_is_played_without_and_with_the_guard():
    names = {AT_ONCE, SOON, "notice, EKS evicts after 5 s", LATE, ADVISED, NO_SPOT}
    assert set(BESIDE_EKS) == names | {name + GUARD for name in names}
