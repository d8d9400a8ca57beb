"""The order in which a gang tries flavors, by what a pod and hour costs it with the work that interruptions lose.

An instance that goes takes the work of all pods of its gang with it, back to when they last saved it. So a flavor
costs its price times (1 + interruptions of an instance and hour x pods of the gang x hours that one loses). Each pod
counts as an instance of its own, since no place is known yet. Where anything of that is not said, the
configuration's order stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from fractions import Fraction
from typing import Final

from plimsoll_batch.domain.jobs import Shape
from plimsoll_batch.domain.quota.cohorts import Flavor, Forest, Queue

_HOUR: Final = timedelta(hours=1)
_MICROSECOND: Final = timedelta(microseconds=1)


def cost_of(flavor: Flavor, shape: Shape) -> Fraction | None:
    """Return what a pod and hour of a gang costs in a flavor; None where that is not known."""
    if flavor.price is None or shape.loses is None:
        return None
    pods = sum(role.pods for role in shape.roles)
    hours = Fraction(shape.loses // _MICROSECOND, _HOUR // _MICROSECOND)
    return flavor.price * (1 + flavor.interruptions_per_hour * pods * hours)


def by_cost(names: Sequence[str], flavors: Mapping[str, Flavor], shape: Shape) -> Sequence[str]:
    """Return flavors in the order in which they are tried: the cheapest first, equal ones as configured."""
    costs: dict[str, Fraction] = {}
    for name in names:
        cost = cost_of(flavors[name], shape)
        if cost is None:
            return names
        costs[name] = cost
    return sorted(names, key=costs.__getitem__)


def priced_queues(forest: Forest) -> frozenset[str]:
    """Return the queues in which costs may change an order."""
    priced = {flavor.name for flavor in forest.flavors if flavor.price is not None}
    return frozenset(
        queue.name
        for queue in forest.queues
        if any(
            len(group.flavors) > 1 and priced.issuperset(group.flavors) for group in queue.groups
        )
    )


def costs_in_words(shape: Shape, queue: Queue, flavors: Mapping[str, Flavor]) -> tuple[str, ...]:
    """Say by which costs the flavors of each group are ordered; nothing of groups that keep their order."""
    found = []
    for group in queue.groups:
        costs = [
            (name, cost_of(flavors[name], shape)) for name in by_cost(group.flavors, flavors, shape)
        ]
        known = [f"{name} {float(cost):.4g}" for name, cost in costs if cost is not None]
        if shape.loses is not None and 1 < len(costs) == len(known):
            lost = f"{shape.loses.total_seconds():.0f} s"
            found.append(
                f"flavors by cost of a pod and hour, with {lost} lost by an interruption: {', '.join(known)}"
            )
    return tuple(found)
