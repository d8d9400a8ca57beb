"""Capacity pools: what is reclaimed together, and what happened to each."""

from __future__ import annotations

from plimsoll.domain.spot.capacity_pools import (
    CapacityPool,
    Source,
    covered,
    interrupted_pools,
    refused_sources,
    risk_of,
)
from plimsoll.domain.spot.pool_history import (
    KEPT,
    KIND_OF_NOTICE,
    PoolEvent,
    PoolEventKind,
    events_of,
    risks,
)

__all__ = [
    "KEPT",
    "KIND_OF_NOTICE",
    "CapacityPool",
    "PoolEvent",
    "PoolEventKind",
    "Source",
    "covered",
    "events_of",
    "interrupted_pools",
    "refused_sources",
    "risk_of",
    "risks",
]
