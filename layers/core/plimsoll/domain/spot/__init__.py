"""Capacity pools: what is reclaimed together, and what happened to each."""

from __future__ import annotations

from plimsoll.domain.spot.capacity_pools import (
    CapacityPool,
    Source,
    interrupted_pools,
    is_covered,
    refused_sources,
    risk_of,
)
from plimsoll.domain.spot.pool_history import (
    KIND_OF_NOTICE,
    POOL_EVENTS_KEPT,
    PoolEvent,
    PoolEventKind,
    events_of,
    risks,
)

__all__ = [
    "KIND_OF_NOTICE",
    "POOL_EVENTS_KEPT",
    "CapacityPool",
    "PoolEvent",
    "PoolEventKind",
    "Source",
    "events_of",
    "interrupted_pools",
    "is_covered",
    "refused_sources",
    "risk_of",
    "risks",
]
