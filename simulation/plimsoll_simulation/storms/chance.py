"""Draws a yes or no.

All drawing code takes a `random.Random`: one with a seed, or one that Hypothesis drives. Hypothesis
simplifies a storm by drawing smaller numbers, so the plainest choice stands first in every list.
"""

from __future__ import annotations

import random


def chance(rnd: random.Random, share: float) -> bool:
    """Return True in the given share of draws; the smallest draw says no."""
    return rnd.random() >= 1 - share
