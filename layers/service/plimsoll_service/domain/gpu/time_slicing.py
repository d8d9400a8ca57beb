"""What pods that share a GPU by time-slicing cost one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

PER_OTHER: Final = 1.11
"""How much longer a kernel takes for each other process that computes: as measured on an H100."""
_ROUNDS: Final = 60
"""More than enough: each comes closer, from below."""


def slowdown(others: Sequence[float]) -> float:
    """Return how many times as long a kernel takes beside others.

    The others are slowed down as well and so compute for more of the time than alone.

    Args:
        others: for each, the share of the time for which it would compute alone.
    """
    found = 1.0
    for _ in range(_ROUNDS):
        active = sum(found / (found + (1 - duty) / duty) for duty in others if duty)
        found = 1 + PER_OTHER * active
    return found
