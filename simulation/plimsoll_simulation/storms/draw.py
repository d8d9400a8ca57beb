"""Draws a storm: a seed is the same storm on every machine and in every run of one version.

Seeds are drawn from by `random.Random`, not by Hypothesis: Hypothesis draws numbers also from the
source of whichever modules are loaded, so that its seeds mean other storms in other processes. The
same code takes a `Random` that Hypothesis drives, and then a failing test gets the plainest storm.
"""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Final

from plimsoll_simulation.durations import Span
from plimsoll_simulation.fake_aws.nodegroups import GroupKind, NodeGroupSpec
from plimsoll_simulation.storms.chance import chance
from plimsoll_simulation.storms.draw_budgets import with_shared_budget
from plimsoll_simulation.storms.draw_differences import with_differences
from plimsoll_simulation.storms.draw_situations import with_situations
from plimsoll_simulation.storms.draw_surroundings import with_surroundings
from plimsoll_simulation.storms.draw_timelines import draw_timeline, with_shift
from plimsoll_simulation.storms.draw_workloads import draw_workloads
from plimsoll_simulation.storms.model import Storm

SMALL: Final = 0.4
"""The share of storms that have few pods."""
RENEWED: Final = 0.3
"""The share of groups that can grow whose owner lets Plimsoll terminate empty instances."""
OTHER_CONTROLLER: Final = 0.5
"""The share of storms in which another controller acts."""
ZONES: Final = ("us-east-1a", "us-east-1b", "us-east-1c")


def draw_storm(seed: int, *, small: bool | None = None) -> Storm:
    """Return the storm of a seed.

    Args:
        seed: any number.
        small: whether it has few pods; None leaves that to the seed.
    """
    rnd = random.Random(f"storm/{seed}")  # noqa: S311 - a drill, no secret
    return storm_by(rnd, seed=seed, small=small)


def storm_by(rnd: random.Random, *, seed: int, small: bool | None = None) -> Storm:
    """Return a storm drawn from `rnd`; the seed draws start-up times and the like when it is played."""
    by_chance = chance(rnd, SMALL)
    few = by_chance if small is None else small
    groups = draw_groups(rnd, small=few)
    workloads = draw_workloads(rnd, groups, small=few)
    events = draw_timeline(rnd, groups, workloads, small=few)
    other_controllers = tuple(name for name in ("gitops", "hpa") if chance(rnd, OTHER_CONTROLLER))
    events = with_shift(rnd, groups, events)
    storm = Storm(
        seed=seed,
        groups=groups,
        workloads=workloads,
        events=events,
        other_controllers=other_controllers,
    )
    storm = with_differences(rnd, with_surroundings(rnd, with_situations(rnd, storm)))
    return with_shared_budget(rnd, storm)


def draw_groups(rnd: random.Random, *, small: bool) -> tuple[NodeGroupSpec, ...]:
    """Draw an on-demand group and some of spot, over up to three zones; some cannot grow."""
    zones = ZONES[: rnd.randint(1, 3)]
    spots = 1 if small else rnd.randint(1, 3)
    return tuple(_group(rnd, zones, number, small=small) for number in range(1 + spots))


def _group(
    rnd: random.Random, zones: tuple[str, ...], number: int, *, small: bool
) -> NodeGroupSpec:
    spot = number > 0
    name = f"spot-{number}" if spot else "base"
    size = rnd.randint(1, 3) if small else rnd.randint(1, 8)
    kind: GroupKind = rnd.choice(("asg", "asg", "asg", "eks-nodegroup", "static"))
    startup = timedelta(seconds=rnd.choice((20, 40, 70, 100)))
    return NodeGroupSpec(
        name=name,
        kind=kind,
        capacity="spot" if spot else "on-demand",
        instance_type=f"{name}.xlarge" if spot else "m6i.xlarge",
        zones=tuple(rnd.sample(zones, rnd.randint(1, len(zones)))),
        size=size,
        max=size if kind == "static" else size + rnd.choice((0, 2, 10, 10)),
        startup=Span(least=startup, most=startup),
        renew=kind != "static" and chance(rnd, RENEWED),
        allocatable={"cpu": f"{rnd.choice((2000, 4000))}m", "memory": "16Gi", "pods": "30"},
    )
