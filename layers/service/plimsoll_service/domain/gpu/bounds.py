"""What a count of overflows proves: the exact upper bound of a share (Clopper and Pearson, one-sided)."""

from __future__ import annotations

from math import exp, lgamma, log, log1p
from typing import Final

CONFIDENCE: Final = 0.95
_HALVINGS: Final = 40
_MOST: Final = 10**6


def upper_bound(over: int, judged: int, confidence: float = CONFIDENCE) -> float:
    """Return the largest share of overflows that `over` of `judged` leave possible; 1: nothing is proven."""
    if over >= judged:
        return 1.0
    low, high = over / judged, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _at_most(over, judged, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def still_needed(over: int, judged: int, within: float) -> int:
    """Return how many more clean ones it takes to claim that at most `within` overflow. 0: none."""
    if upper_bound(over, judged) <= within:
        return 0
    low, high = judged, max(judged, 1)
    while upper_bound(over, high) > within and high < _MOST:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        if upper_bound(over, middle) > within:
            low = middle
        else:
            high = middle
    return high - judged


def _at_most(over: int, judged: int, share: float) -> float:
    """Return the chance of so few overflows where each of `judged` overflows with this chance."""
    logs = (
        lgamma(judged + 1)
        - lgamma(count + 1)
        - lgamma(judged - count + 1)
        + (count * log(share) if count else 0.0)
        + (judged - count) * log1p(-share)
        for count in range(over + 1)
    )
    return sum(map(exp, logs))
