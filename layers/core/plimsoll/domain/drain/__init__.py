"""The plan of a drain: replace the pods of interrupted nodes, evict them in time, close the interruptions."""

from __future__ import annotations

from plimsoll.domain.drain.action_events import event_of_action
from plimsoll.domain.drain.added_nodes import (
    EMPTY_FOR,
    added_by_group,
    added_entry,
    added_since,
    report_of_added,
    reports_wanted,
)
from plimsoll.domain.drain.cluster_plan import ClusterPlan
from plimsoll.domain.drain.cordon_rate_limit import GATHER_NOTICES, MOST_REPORTS, waiting_for_turn
from plimsoll.domain.drain.node_drain import DrainPlan, DrainRequest, plan_nodes, plan_undo
from plimsoll.domain.drain.planner import plan_drain
from plimsoll.domain.drain.strategies import strategy_of, undo_for_good

__all__ = [
    "EMPTY_FOR",
    "GATHER_NOTICES",
    "MOST_REPORTS",
    "ClusterPlan",
    "DrainPlan",
    "DrainRequest",
    "added_by_group",
    "added_entry",
    "added_since",
    "event_of_action",
    "plan_drain",
    "plan_nodes",
    "plan_undo",
    "report_of_added",
    "reports_wanted",
    "strategy_of",
    "undo_for_good",
    "waiting_for_turn",
]
