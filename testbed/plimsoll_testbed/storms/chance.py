"""What draws have in common.

Whoever draws is given a `random.Random`: one with a seed, or one that Hypothesis drives. So that
Hypothesis makes a storm plainer by drawing smaller numbers, the plainest choice stands first.
"""

from __future__ import annotations

import random


def chance(rnd: random.Random, share: float) -> bool:
    """Draw whether something is so, in such a share of all cases; the smallest draw says no."""
    return rnd.random() >= 1 - share
