"""What is remembered of capacity pools: of one account and region, for all clusters of a stack.

What happens to a pool within ten minutes is one event, since a pool is reclaimed as a whole: told twice,
or by five hundred instances, it is written down once. Events lose half of their weight in each half-life.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum, unique
from typing import Final

from plimsoll.domain.kubernetes import Node
from plimsoll.domain.node_groups import InsufficientCapacity, NodeGroup, Refusal
from plimsoll.domain.spot.capacity_pools import CapacityPool

HALF_LIFE: Final = timedelta(hours=48)
"""On recordings of two sets of GPU pools any half-life from one to ninety-six hours chose about equally well, and
each better than none."""
POOL_EVENTS_KEPT: Final = timedelta(days=14)
"""How long an event is kept: by then less than a hundredth of its weight is left."""
MERGED: Final = timedelta(minutes=10)
"""What happens to a pool within this time is one event. A pool is avoided as long after an interruption."""


@unique
class PoolEventKind(StrEnum):
    """What happened to a pool."""

    INTERRUPTION = "interruption"
    REBALANCE = "rebalance"
    REFUSAL = "refusal"
    LAUNCH = "launch"


_WEIGHTS: Final[Mapping[PoolEventKind, float]] = {
    PoolEventKind.INTERRUPTION: 1.0,
    PoolEventKind.REBALANCE: 0.25,
    PoolEventKind.REFUSAL: 0.05,
    PoolEventKind.LAUNCH: 0.0,
}
"""How much an event tells of interruptions to come. A refused launch is far more frequent than a loss."""
KIND_OF_NOTICE: Final[Mapping[str, PoolEventKind]] = {
    "spot-interruption": PoolEventKind.INTERRUPTION,
    "rebalance-recommendation": PoolEventKind.REBALANCE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolEvent:
    """One thing that happened to a pool."""

    pool: CapacityPool
    kind: PoolEventKind
    at: datetime

    @property
    def key(self) -> tuple[CapacityPool, PoolEventKind, int]:
        """What two tellings of one event have in common."""
        return self.pool, self.kind, int(self.at.timestamp() // MERGED.total_seconds())


def risks(events: Iterable[PoolEvent], now: datetime) -> Mapping[CapacityPool, float]:
    """Return how likely pools are to be interrupted, from 0 to 1; the unknown ones are left out.

    The number orders pools, and is no probability: it is s / (1 + s) of the sum s of what the events weigh
    now, so that of pools with many events the worse is still told. 1 is a pool that is reclaimed just now.
    """
    found: dict[CapacityPool, float] = defaultdict(float)
    for event in events:
        age = max(now - event.at, timedelta())
        found[event.pool] += _WEIGHTS[event.kind] * 0.5 ** (age / HALF_LIFE)
    reclaimed = {
        event.pool
        for event in events
        if event.kind is PoolEventKind.INTERRUPTION and now - event.at < MERGED
    }
    return {
        pool: 1.0 if pool in reclaimed else round(told / (1 + told), 3)
        for pool, told in sorted(found.items())
    }


def events_of(
    group: NodeGroup, refusals: Iterable[Refusal], nodes: Iterable[Node]
) -> Iterator[PoolEvent]:
    """Yield what became of the launches of a group: refused for want of capacity, or Ready.

    Only a group of one type tells which pool a refusal or a node without words about it is of.
    """
    only = group.instance_types[0] if len(group.instance_types) == 1 else None
    for refusal in refusals:
        if isinstance(refusal, InsufficientCapacity) and (named := refusal.instance_type or only):
            for zone in (refusal.zone,) if refusal.zone else group.zones:
                pool = CapacityPool(named, zone, group.capacity)
                yield PoolEvent(pool=pool, kind=PoolEventKind.REFUSAL, at=refusal.at)
    for node in nodes:
        at = group.launched.get(node.instance or "")
        if at is not None and node.ready and node.zone in group.zones and only:
            pool = CapacityPool(only, node.zone, group.capacity)
            yield PoolEvent(pool=pool, kind=PoolEventKind.LAUNCH, at=at)
