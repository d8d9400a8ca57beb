"""Draws a storm: a seed is a storm, on every machine and in every run of one version."""

from __future__ import annotations

import random
from typing import Final

from plimsoll_testbed.storms.chance import chance
from plimsoll_testbed.storms.draw_clusters import draw_groups
from plimsoll_testbed.storms.draw_timelines import draw_timeline
from plimsoll_testbed.storms.draw_workloads import draw_workloads
from plimsoll_testbed.storms.model import Storm

SMALL: Final = 0.4
"""The share of storms that are small enough to be searched through."""


def draw_storm(seed: int, *, small: bool | None = None) -> Storm:
    """Return the storm of a seed.

    Args:
        seed: any number.
        small: whether few pods shall be in it; None leaves it to the seed.
    """
    rnd = random.Random(f"storm/{seed}")  # noqa: S311 - a drill, no secret
    return storm_by(rnd, seed=seed, small=small)


def storm_by(rnd: random.Random, *, seed: int, small: bool | None = None) -> Storm:
    """Return a storm drawn by somebody; the seed draws start-up times and the like when it is played."""
    by_chance = chance(rnd, SMALL)
    few = by_chance if small is None else small
    groups = draw_groups(rnd, small=few)
    workloads = draw_workloads(rnd, groups, small=few)
    events = draw_timeline(rnd, groups, workloads, small=few)
    return Storm(seed=seed, groups=groups, workloads=workloads, events=events)
