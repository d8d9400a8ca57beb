"""The cheapest instances for items of given sizes: a heuristic, and a bound that no packing is below.

The bound is the optimum of the linear program in which items may be cut up. Its dual prices, one for
processors and one for memory, say what an instance is worth to these items; the heuristic opens the
instance that carries the most worth for each dollar, and then looks for cheaper ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from plimsoll.domain.kubernetes import Resources

_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """An instance that can be had any number of times."""

    type: str
    arch: str = "amd64"
    capacity: str
    """`on-demand` or `spot`."""
    whole: Resources
    """What it leaves to pods."""
    cpu: int
    """Millicores that it leaves to the items, less what stays free and what DaemonSets take."""
    memory: int
    pods: int
    hourly: float

    @property
    def family(self) -> str:
        """What is reclaimed together."""
        return self.type.partition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """What a millicore and a byte are worth."""

    cpu: float
    memory: float

    def of(self, cpu: int, memory: int) -> float:
        """Return what so much is worth."""
        return self.cpu * cpu + self.memory * memory


def worth_of(offers: Sequence[Offer], cpu: int, memory: int) -> Worth:
    """Return the dual prices of a demand: no offer is worth more than it costs.

    The optimum of a program with two prices lies where two offers cost exactly what they are worth, or
    where one does and the other price is 0.
    """
    found = [Worth(cpu=_least(o.hourly / o.cpu for o in offers if o.cpu), memory=0.0)]
    found.append(Worth(cpu=0.0, memory=_least(o.hourly / o.memory for o in offers if o.memory)))
    for one, other in combinations(offers, 2):
        area = one.cpu * other.memory - other.cpu * one.memory
        if area:
            found.append(
                Worth(
                    cpu=(one.hourly * other.memory - other.hourly * one.memory) / area,
                    memory=(other.hourly * one.cpu - one.hourly * other.cpu) / area,
                )
            )
    possible = [worth for worth in found if _within(worth, offers)]
    return max(
        possible, key=lambda worth: worth.of(cpu, memory), default=Worth(cpu=0.0, memory=0.0)
    )


def useful(offers: Iterable[Offer], *, families: int = 1) -> Sequence[Offer]:
    """Leave out what so many other families give as much of everything for, and cost no more."""
    kept: list[Offer] = []
    for offer in sorted(offers, key=lambda o: (o.hourly, -o.cpu, -o.memory, -o.pods, o.type)):
        better = {
            k.family
            for k in kept
            if k.cpu >= offer.cpu and k.memory >= offer.memory and k.pods >= offer.pods
        }
        if len(better) < families:
            kept.append(offer)
    return kept


def filled(offer: Offer, items: Iterable[tuple[int, int, int]], worth: Worth) -> float:
    """Return the worth of the items, in this order, that an empty instance takes.

    Args:
        offer: the instance.
        items: millicores, bytes, and how many of that size there are.
        worth: what they are worth.
    """
    cpu, memory, pods, value = offer.cpu, offer.memory, offer.pods, 0.0
    for one_cpu, one_memory, count in items:
        taken = min(
            count,
            pods,
            cpu // one_cpu if one_cpu else count,
            memory // one_memory if one_memory else count,
        )
        if taken > 0:
            cpu, memory, pods = cpu - taken * one_cpu, memory - taken * one_memory, pods - taken
            value += taken * worth.of(one_cpu, one_memory)
    return value


def _within(worth: Worth, offers: Sequence[Offer]) -> bool:
    return min(worth.cpu, worth.memory) >= 0 and all(
        worth.of(o.cpu, o.memory) <= o.hourly * (1 + _ROUNDING) for o in offers
    )


def _least(prices: Iterable[float]) -> float:
    return min(prices, default=0.0)
