"""How many pods of one shape fit into what nodes have free."""

from __future__ import annotations

from collections.abc import Iterable

from plimsoll.domain.kubernetes import Resources


def count_places(each: Resources, free: Iterable[Resources], enough: int) -> int:
    """Return how many pods of one shape fit, at most `enough`."""
    places = 0
    for left in free:
        if places >= enough:
            break
        places += places_on(each, left)
    return min(places, enough)


def places_on(each: Resources, headroom: Resources) -> int:
    """Return how many pods of one shape fit into what a node has free."""
    counts = [headroom.pods]
    if each.cpu:
        counts.append(headroom.cpu // each.cpu)
    if each.memory:
        counts.append(headroom.memory // each.memory)
    have = dict(headroom.extended)
    counts += [have.get(name, 0) // amount for name, amount in each.extended if amount]
    return max(0, min(counts))
