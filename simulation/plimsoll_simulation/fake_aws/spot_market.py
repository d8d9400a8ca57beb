"""Spot markets that are drawn: when each pool has capacity, and when all of it is reclaimed.

A pool has capacity for a time with P(longer than t) = scale / (scale + t), cut at a maximum, and lacks it for a time of
the same shape: the longer it has stood, the longer it will. On top come common shocks at constant rates. A shock of a
family takes each of its pools with a probability of its own, and so does a shock of the region with all pools.

The same seed draws the same market on every machine: only `random()` of one Mersenne Twister is used, and in this order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from math import log
from random import Random
from typing import Final, NamedTuple

_MINUTE: Final = 60.0
_HOUR: Final = 3600.0
_DAY: Final = 86_400.0
_LONGEST_UP: Final = 20 * _DAY
_LONGEST_DOWN: Final = _DAY
_SIBLINGS_WITHIN: Final = 60
"""Seconds within which pools of a family are lost together."""


class MarketPool(NamedTuple):
    """One capacity pool of a market."""

    family: str
    zone: str


class Change(NamedTuple):
    """From when on a pool has capacity, or has none."""

    second: int
    up: bool


type Trace = Mapping[MarketPool, Sequence[Change]]
"""The changes of every pool in order, from second 0 on, where all have capacity."""


class _Shock(NamedTuple):
    at: float
    hits: float
    """The probability that it takes a pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotMarket:
    """How calm the pools of a region are."""

    up_scale: float
    """Seconds: as many pools are up for longer than that as for less."""
    down_scale: float
    family_shocks_every: float
    """The mean seconds between two shocks of a family."""
    family_hits: float = 0.7
    region_shocks_every: float = 20 * _DAY
    region_hits: float = 0.8

    def draw(self, seed: int, days: float, families: Sequence[str], zones: Sequence[str]) -> Trace:
        """Draw the changes of the pools of some families in some zones, over some days."""
        end, random = days * _DAY, Random(seed)  # noqa: S311 - no secret
        of_family = {
            family: [*_shocks(random, end, self.family_shocks_every, self.family_hits)]
            for family in families
        }
        of_region = [*_shocks(random, end, self.region_shocks_every, self.region_hits)]
        return {
            MarketPool(family, zone): [
                *self._changes(random, end, [*of_family[family], *of_region])
            ]
            for family in families
            for zone in zones
        }

    def _changes(self, random: Random, end: float, shocks: Sequence[_Shock]) -> Iterator[Change]:
        """Yield the changes of one pool."""
        drawn = sorted((shock.at, shock.hits, random.random()) for shock in shocks)
        taking = [at for at, hits, draw in drawn if draw < hits]
        at = 0.0
        yield Change(0, up=True)
        while True:
            fails = at + _lomax(random, self.up_scale, _LONGEST_UP)
            at = next((shock for shock in taking if at <= shock < fails), fails)
            if at >= end:
                return
            yield Change(int(at), up=False)
            at += _lomax(random, self.down_scale, _LONGEST_DOWN)
            if at >= end:
                return
            yield Change(int(at), up=True)


MARKETS: Final[Mapping[str, SpotMarket]] = {
    "storm": SpotMarket(
        up_scale=30 * _MINUTE,
        down_scale=15 * _MINUTE,
        family_shocks_every=5 * _HOUR,
        family_hits=0.6,
    ),
    "rough": SpotMarket(
        up_scale=6 * _HOUR, down_scale=15 * _MINUTE, family_shocks_every=30 * _HOUR
    ),
    "calm": SpotMarket(
        up_scale=60 * _HOUR,
        down_scale=30 * _MINUTE,
        family_shocks_every=7 * _DAY,
        region_shocks_every=90 * _DAY,
    ),
    "still": SpotMarket(
        up_scale=1000 * _HOUR,
        down_scale=30 * _MINUTE,
        family_shocks_every=25 * _DAY,
        region_shocks_every=360 * _DAY,
    ),
}
"""By name, the roughest first: storm is about what GPUs had, still about the calmest of ordinary families."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFigures:
    """What a trace is like."""

    losses: int
    available: float
    """The share of the time in which a pool has capacity."""
    per_hour: float
    """Losses an hour of a pool that has capacity."""
    siblings: float
    """How likely another pool of the family is lost within a minute of a loss."""


def figures(trace: Trace, days: float) -> TraceFigures:
    """Return what a trace of so many days is like."""
    lost = {pool: [c.second for c in changes if not c.up] for pool, changes in trace.items()}
    end = Change(int(days * _DAY), up=False)
    held = sum(
        after.second - before.second
        for changes in trace.values()
        for before, after in pairwise([*changes, end])
        if before.up
    )
    losses = sum(map(len, lost.values()))
    pairs = [(a, b) for a, b in permutations(lost, 2) if a.family == b.family]
    together = sum(_near(second, lost[b]) for a, b in pairs for second in lost[a])
    return TraceFigures(
        losses=losses,
        available=held / (len(trace) * days * _DAY),
        per_hour=losses / (held / _HOUR),
        siblings=together / max(1, sum(len(lost[a]) for a, _ in pairs)),
    )


def _near(second: int, others: Sequence[int]) -> bool:
    """Whether one of some seconds, in order, is near another."""
    first = bisect_left(others, second - _SIBLINGS_WITHIN)
    return first < len(others) and others[first] <= second + _SIBLINGS_WITHIN


def is_up(changes: Sequence[Change], second: float) -> bool:
    """Whether a pool has capacity at a time."""
    return next(change.up for change in reversed(changes) if change.second <= second)


def _shocks(random: Random, end: float, every: float, hits: float) -> Iterator[_Shock]:
    at = -log(1 - random.random()) * every
    while at < end:
        yield _Shock(at, hits)
        at -= log(1 - random.random()) * every


def _lomax(random: Random, scale: float, longest: float) -> float:
    drawn = random.random() * (1 - scale / (scale + longest))
    return scale * drawn / (1 - drawn)
