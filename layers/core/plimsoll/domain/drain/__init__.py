"""The plan of a drain: replace the pods of interrupted nodes, evict them in time, close the interruptions."""

from __future__ import annotations

from plimsoll.domain.drain.action_events import of_action
from plimsoll.domain.drain.added_nodes import SETTLE, added, added_by_group, reports_wanted
from plimsoll.domain.drain.cordon_rate_limit import GATHER, MOVES, waiting_for_turn
from plimsoll.domain.drain.planner import plan_drain
from plimsoll.domain.drain.strategies import releasable, releases, undo, way_of
from plimsoll.domain.drain.throughput import SAMPLE, Throughput

__all__ = [
    "GATHER",
    "MOVES",
    "SAMPLE",
    "SETTLE",
    "Throughput",
    "added",
    "added_by_group",
    "of_action",
    "plan_drain",
    "releasable",
    "releases",
    "reports_wanted",
    "undo",
    "waiting_for_turn",
    "way_of",
]
