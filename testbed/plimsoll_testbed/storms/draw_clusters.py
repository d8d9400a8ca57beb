"""Draws clusters: few zones, small groups that may or may not grow, so that rules bite."""

from __future__ import annotations

import random
from typing import Final

from plimsoll_testbed.storms.model import Group

ZONES: Final = ("us-east-1a", "us-east-1b", "us-east-1c")


def draw_groups(rnd: random.Random, *, small: bool) -> tuple[Group, ...]:
    """Draw an on-demand group and some of spot, over up to three zones."""
    zones = ZONES[: rnd.randint(1, 3)]
    spots = 1 if small else rnd.randint(1, 3)
    return tuple(_group(rnd, zones, number, small=small) for number in range(1 + spots))


def _group(rnd: random.Random, zones: tuple[str, ...], number: int, *, small: bool) -> Group:
    spot = number > 0
    size = rnd.randint(1, 3) if small else rnd.randint(1, 8)
    kind = rnd.choice(("asg", "asg", "asg", "eks-nodegroup", "static"))
    return Group(
        name=f"spot-{number}" if spot else "base",
        kind=kind,
        capacity="spot" if spot else "on-demand",
        zones=tuple(rnd.sample(zones, rnd.randint(1, len(zones)))),
        size=size,
        most=size if kind == "static" else size + rnd.choice((0, 2, 10, 10)),
        startup_seconds=rnd.choice((20, 40, 70, 100)),
        cpu=rnd.choice((2000, 4000)),
    )
