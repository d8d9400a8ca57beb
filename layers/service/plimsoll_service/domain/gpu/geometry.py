"""How a GPU model can be split by MIG, and the fewest GPUs that hold a demand.

No solver: take any set S of memory slices. Instances on one GPU do not overlap, so they cover at most |S|
slices of S, and an instance of a profile covers at least as many as it does at its least harmful start.
So a demand needs at least `sum(least cover x count) / |S|` GPUs. The undominated sets of a card of seven
compute slices are {3}, {1, 3, 5}, {0..6} and {0..7}; together they give

    d7 + ceil(max(d4, (2d4+d3+d2)/3, (4d4+3d3+2d2+d1)/7, (4d4+4d3+2d2+d1)/8))

with double-memory 1g once in the third term and twice in the fourth, and for a card of four slices
`d4 + ceil((2d2+d1)/4)`. `MigGeometries.fewest` reaches this bound by a plan, which proves the plan optimal.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, count
from math import sumprod
from operator import ge, mul
from typing import Final

from plimsoll.domain.errors import BadInput
from plimsoll_service.domain.gpu.cards import Card, Profile

WHOLE_GPU: Final = "gpu"
"""What a GPU without MIG gives: one `nvidia.com/gpu`. It stands beside the names of profiles."""

type Demand = Mapping[str, int]
"""Instances by the name of their profile, or `WHOLE_GPU`."""
type Counts = tuple[int, ...]
"""Instances in the order of `MigGeometries.names`."""
type Bound = tuple[int, Counts]
"""The size of a set of memory slices, and how many of them an instance of each profile covers at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MigGeometries:
    """The maximal geometries of a card, and the bounds that they set."""

    names: tuple[str, ...]
    """`WHOLE_GPU`, then the profiles, smallest first."""
    maximal: tuple[Counts, ...]
    """Geometries to which no instance can be added, fullest profiles first; the first is `WHOLE_GPU`."""
    bounds: tuple[Bound, ...]

    def counts(self, demand: Demand) -> Counts:
        """Return a demand in the order of the names.

        Raises:
            BadInput: the card has no such profile, or the number is negative.
        """
        for name, number in demand.items():
            if "+" in name:
                raise BadInput(
                    f"{name}: media extensions and graphics are limited to one or two instances of a GPU; "
                    f"plan with {name.partition('+')[0]}, and place {name} by hand"
                )
            if name not in self.names:
                raise BadInput(f"{name}: no such profile; there are {', '.join(self.names)}")
            if number < 0:
                raise BadInput(f"{name}: {number} instances")
        return tuple(demand.get(name, 0) for name in self.names)

    def by_name(self, counts: Counts) -> dict[str, int]:
        """Return counts by name, without zeros."""
        return {name: n for name, n in zip(self.names, counts, strict=True) if n}

    def needed(self, counts: Counts) -> int:
        """Return the bound: no fewer GPUs hold this demand."""
        return max(-(-int(sumprod(covered, counts)) // slices) for slices, covered in self.bounds)

    def fewest(self, counts: Counts) -> Counter[Counts]:
        """Return the geometries of the fewest GPUs that hold a demand.

        It meets `needed` for each demand that was ever tried: each geometry that it takes lowers the bound
        by one. Where none did, it searches all combinations of that many GPUs before it takes one more.
        """
        useful = _useful(self.maximal, tuple(wanted > 0 for wanted in counts))
        for limit in count(self.needed(counts)):
            found = self._within(counts, limit, useful)
            if found is not None:
                return Counter(dict(found))
        raise AssertionError

    def _within(
        self, counts: Counts, limit: int, geometries: Sequence[Counts]
    ) -> list[tuple[Counts, int]] | None:
        """Return some of the geometries that hold a demand on at most `limit` GPUs; None: none do.

        The most GPUs of a geometry come first. That is no guess: one that no longer lowers the bound now
        does so at no later point, so that only a demand above its bound ever comes back.
        """
        if not any(counts):
            return []
        if not geometries:
            return None
        geometry, *others = geometries
        for number in range(self.most(counts, geometry, limit), -1, -1):
            rest = self._within(less(counts, geometry, number), limit - number, others)
            if rest is not None:
                return [(geometry, number), *rest] if number else rest
        return None

    def most(self, counts: Counts, supply: Counts, limit: int, gpus: int = 1, ends: int = 0) -> int:
        """Return of how many nodes the rest of a demand still fits the GPUs that are left.

        Args:
            counts: the demand.
            supply: what a node gives.
            limit: the GPUs that there may be.
            gpus: those of a node.
            ends: the most nodes; 0: as many as `limit` allows.
        """
        # The rest's bound falls by at most a node's GPUs with each node, and ever less: bisect.
        if gpus + self.needed(less(counts, supply)) > limit:
            return 0
        return bisect_right(
            range(1, (ends or limit // gpus) + 1),
            limit,
            key=lambda k: k * gpus + self.needed(less(counts, supply, k)),
        )


def less(counts: Counts, supply: Counts, nodes: int = 1) -> Counts:
    """Return what is left of a demand beside some nodes."""
    return tuple(
        [
            left if (left := wanted - nodes * given) > 0 else 0
            for wanted, given in zip(counts, supply, strict=True)
        ]
    )


def geometries_of(card: Card) -> MigGeometries:
    """Return how a card can be split; one without MIG gives whole GPUs only."""
    return mig_geometries(tuple(card.profiles.values()), max(card.memory, 1))


@cache
def mig_geometries(profiles: tuple[Profile, ...], slices: int) -> MigGeometries:
    """Return the geometries of some profiles on so many memory slices, and their bounds."""
    found = feasible(profiles, slices)
    most = sorted(
        (g for g in found if any(g) and not any(_dominates(h, g) for h in found)), key=fullest_first
    )
    sets = {
        (len(chosen), tuple(_least_cover(profile, chosen) for profile in profiles))
        for size in range(1, slices + 1)
        for chosen in map(frozenset, combinations(range(slices), size))
    }
    bounds = {
        one for one in sets if not any(_stronger(other, one) for other in sets if other != one)
    }
    for one in sorted(bounds):
        if any(_imply(*pair, one) for pair in combinations(sorted(bounds - {one}), 2)):
            bounds.remove(one)
    return MigGeometries(
        names=(WHOLE_GPU, *(profile.name for profile in profiles)),
        maximal=((1, *(0 for _ in profiles)), *((0, *geometry) for geometry in most)),
        bounds=tuple((size, (size, *covered)) for size, covered in sorted(bounds)),
    )


def feasible(profiles: Sequence[Profile], slices: int) -> frozenset[Counts]:
    """Return each multiset of profiles that a GPU can hold, in the order of the profiles."""
    return frozenset(_from(0, profiles, slices, (0,) * len(profiles)))


def _from(start: int, profiles: Sequence[Profile], slices: int, held: Counts) -> Iterator[Counts]:
    if start >= slices:
        yield held
        return
    yield from _from(start + 1, profiles, slices, held)
    for place, profile in enumerate(profiles):
        if start in profile.starts and start + profile.memory <= slices:
            more = (*held[:place], held[place] + 1, *held[place + 1 :])
            yield from _from(start + profile.memory, profiles, slices, more)


@cache
def _useful(maximal: tuple[Counts, ...], wanted: tuple[bool, ...]) -> Sequence[Counts]:
    """Return the geometries that no other replaces where only some profiles are wanted."""
    clipped: dict[Counts, Counts] = {}
    for geometry in maximal:
        clipped.setdefault(tuple(map(mul, geometry, wanted)), geometry)
    return [g for one, g in clipped.items() if not any(_dominates(other, one) for other in clipped)]


def _least_cover(profile: Profile, chosen: Collection[int]) -> int:
    return min(
        sum(slice_ in chosen for slice_ in range(start, start + profile.memory))
        for start in profile.starts
    )


def _dominates(one: Counts, other: Counts) -> bool:
    return one != other and all(map(ge, one, other))


def _stronger(one: Bound, other: Bound) -> bool:
    """Whether a bound is nowhere lower than another; of equal ones the smaller set is."""
    ours, its = _weights(one), _weights(other)
    return one[0] < other[0] if ours == its else all(map(ge, ours, its))


def _imply(one: Bound, other: Bound, third: Bound) -> bool:
    """Whether a weighted mean of two bounds is nowhere lower than a third, which is then needless."""
    low, high = Fraction(0), Fraction(1)
    for a, b, c in zip(_weights(one), _weights(other), _weights(third), strict=True):
        if a == b:
            if a < c:
                return False
        elif a > b:
            low = max(low, (c - b) / (a - b))
        else:
            high = min(high, (c - b) / (a - b))
    return low <= high


def _weights(bound: Bound) -> list[Fraction]:
    size, covered = bound
    return [Fraction(slices, size) for slices in covered]


def fullest_first(counts: Counts) -> Counts:
    """Return a key that sorts geometries with larger profiles before others."""
    return tuple(-number for number in reversed(counts))
