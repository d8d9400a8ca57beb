"""What is remembered of capacity pools: of one account and region, for all clusters of a stack.

What happens to a pool within ten minutes is one event, since a pool is reclaimed as a whole: told twice,
or by five hundred instances, it is written down once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum, unique
from typing import Final

from plimsoll.domain.kubernetes import Node
from plimsoll.domain.node_groups import InsufficientCapacity, NodeGroup, Refusal
from plimsoll.domain.spot.capacity_pools import CapacityPool

POOL_EVENTS_KEPT: Final = timedelta(days=28)
"""How long an event is kept: by then a sixteenth of its weight is left in the rate of its pool."""
MERGED: Final = timedelta(minutes=10)
"""What happens to a pool within this time is one event. As long after it a pool is set aside."""


@unique
class PoolEventKind(StrEnum):
    """What happened to a pool."""

    INTERRUPTION = "interruption"
    REBALANCE = "rebalance"
    REFUSAL = "refusal"
    LAUNCH = "launch"


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
