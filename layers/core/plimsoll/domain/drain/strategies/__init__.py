"""Strategies to replace a pod: one file for each, and one line in the table. The first that says why wins."""

from __future__ import annotations

from typing import Final

from plimsoll.domain.disruptions import WorkloadDisruption
from plimsoll.domain.drain.strategies.at_deadline import AT_DEADLINE
from plimsoll.domain.drain.strategies.evict_within_floor import EVICT_WITHIN_FLOOR
from plimsoll.domain.drain.strategies.release import (
    RELEASE,
    releasable,
    releases,
    replaced,
    undo_for_good,
)
from plimsoll.domain.drain.strategies.stateful_set import STATEFUL_SET, returning
from plimsoll.domain.drain.strategies.steps import CONTENDED, Strategy

STRATEGIES: Final = (RELEASE, AT_DEADLINE, STATEFUL_SET, EVICT_WITHIN_FLOOR)


def strategy_of(disruption: WorkloadDisruption) -> tuple[Strategy, str]:
    """Return how the pods of a disruption are replaced, and why so."""
    for strategy in STRATEGIES:
        if (why := strategy.why(disruption)) is not None:
            return strategy, why
    raise AssertionError("EVICT_WITHIN_FLOOR takes every workload")


__all__ = [
    "CONTENDED",
    "releasable",
    "releases",
    "replaced",
    "returning",
    "strategy_of",
    "undo_for_good",
]
