"""Beside Karpenter: what its queue's delay gains with Plimsoll, and that nothing is worse than Karpenter alone.

The figures stand in docs/guides/beside-karpenter.md; `python -m benchmarks.beside_karpenter` prints them.
"""

from __future__ import annotations

import pytest

from benchmarks.beside_karpenter import SITUATIONS, Figures, played

DELAYED = "the queue is delayed by 15 s"
SLOW = "nodes take 70 s"
FULL = "the NodePool is at its limit"
DYING = "Plimsoll dies in each run"
SUDDEN = "a node ends without a notice"
AT_ONCE = "no delay"
FULL_AT_ONCE = "no delay, and the NodePool is at its limit"


def near(seconds: float) -> object:
    return pytest.approx(seconds, abs=1)


@pytest.mark.parametrize(
    ("situation", "alone", "beside"),
    [
        (DELAYED, (1096, 56, 174, 56), (0, 0, 54, 0)),
        pytest.param(SLOW, (1780, 86, 264, 86), (0, 0, 54, 2), marks=pytest.mark.long),
        pytest.param(FULL, (1096, 56, 174, 56), (0, 0, 54, 0), marks=pytest.mark.long),
        pytest.param(DYING, (1096, 56, 174, 56), (205, 0, 54, 0), marks=pytest.mark.long),
        pytest.param(SUDDEN, (507, 0, 169, 0), (249, 0, 83, 0), marks=pytest.mark.long),
        (AT_ONCE, (1096, 56, 174, 56), (1066, 56, 168, 56)),
        pytest.param(
            FULL_AT_ONCE, (1096, 56, 174, 56), (1066, 56, 168, 56), marks=pytest.mark.long
        ),
    ],
)
def test_beside_karpenter_no_more_is_lost_and_no_node_more_is_launched(situation, alone, beside):
    theirs, ours = (played(SITUATIONS[situation], who) for who in ("none", "plimsoll"))
    assert seconds(theirs) == tuple(map(near, alone))
    assert seconds(ours) == tuple(map(near, beside))
    assert ours.killed <= theirs.killed
    assert ours.nodes <= theirs.nodes


def seconds(found: Figures) -> tuple[float, ...]:
    return found.lost, found.zero, found.lost_of_set, found.zero_of_set


def test_every_situation_has_its_figures():
    assert set(SITUATIONS) == {DELAYED, SLOW, FULL, DYING, SUDDEN, AT_ONCE, FULL_AT_ONCE}
