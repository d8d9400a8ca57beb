"""When running gangs leave a gang its place, as far as anybody knows when they end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from plimsoll_batch.domain.capacity.placement import Place, Placement
from plimsoll_batch.domain.jobs import Gang, RunningGang
from plimsoll_batch.domain.quota import RoleFlavors

type Opportunity = tuple[Place, Sequence[RunningGang], datetime | None]
"""A place, who has to end before, and when that is at the latest; None where it is not known."""


def earliest_place(
    placement: Placement,
    running: Iterable[RunningGang],
    gang: Gang,
    flavors: Sequence[RoleFlavors],
) -> Opportunity | None:
    """Return the place that a gang has first; None where it has none though all others ended.

    They end in the order in which they say so, then those that do not say it, the oldest first. Twice as
    many at each step: the place that is found may need up to twice as many ends as it has to.
    """
    order = sorted((each for each in running if each.on_nodes), key=_end)
    everything = placement.copy()
    everything.release(order)
    if not isinstance(everything.place(gang, flavors), Place):
        return None
    twin, done, step = placement.copy(), 0, 1
    while done < len(order):
        twin.release(order[done : done + step])
        done, step = done + step, step * 2
        found = twin.place(gang, flavors)
        if isinstance(found, Place):
            names = {name for _, name in found.pods}
            after = [each for each in order[:done] if not names.isdisjoint(each.on_nodes)]
            ends = [each.ends for each in after if each.ends is not None]
            return found, after, max(ends) if ends and len(ends) == len(after) else None
    return None


def _end(running: RunningGang) -> tuple[bool, datetime, str]:
    return running.ends is None, running.ends or running.admitted, running.gang.uid
