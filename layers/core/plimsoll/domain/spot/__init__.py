"""Capacity pools: what is reclaimed together, and what happened to each."""

from __future__ import annotations

from plimsoll.domain.spot.capacity_pools import (
    SPOT,
    CapacityPool,
    Source,
    interrupted_pools,
    is_covered,
    pools_of,
    refused_sources,
    spot_pool_of,
)
from plimsoll.domain.spot.pool_history import (
    KIND_OF_NOTICE,
    POOL_EVENTS_KEPT,
    PoolEvent,
    PoolEventKind,
    events_of,
)
from plimsoll.domain.spot.pool_rates import (
    NEVER_SEEN,
    HeldPool,
    PoolMemory,
    PoolRate,
    counted_hours,
    hours_stood,
    ranks_of,
    rate_of,
    reclaim_rates,
    set_aside,
)

__all__ = [
    "KIND_OF_NOTICE",
    "NEVER_SEEN",
    "POOL_EVENTS_KEPT",
    "SPOT",
    "CapacityPool",
    "HeldPool",
    "PoolEvent",
    "PoolEventKind",
    "PoolMemory",
    "PoolRate",
    "Source",
    "counted_hours",
    "events_of",
    "hours_stood",
    "interrupted_pools",
    "is_covered",
    "pools_of",
    "ranks_of",
    "rate_of",
    "reclaim_rates",
    "refused_sources",
    "set_aside",
    "spot_pool_of",
]
