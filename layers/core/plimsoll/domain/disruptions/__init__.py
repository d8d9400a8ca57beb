"""What interruptions do to workloads: which pods must leave, how many must serve, what may be released."""

from __future__ import annotations

from plimsoll.domain.disruptions.budgets import Allowance, kept_of
from plimsoll.domain.disruptions.disruption_builder import by_node, disruptions_of
from plimsoll.domain.disruptions.guard import (
    guard_name,
    guards_at_warning,
    guards_of,
    plan_guard,
)
from plimsoll.domain.disruptions.interruption_end import (
    ended_by_owner,
    of_present_launches,
    why_over,
)
from plimsoll.domain.disruptions.manual_drain import DRAIN, released_by_drain
from plimsoll.domain.disruptions.opt_outs import (
    died_on,
    has_returned,
    left_on,
    left_to_pod_gc,
    misread_opt_outs,
    opted_out_on,
    why_opted_out,
)
from plimsoll.domain.disruptions.releasability import (
    held_on,
    one_node_claims,
    why_never_released,
    why_not_released,
)
from plimsoll.domain.disruptions.stop_times import (
    ASSUMED_SECONDS,
    LEAST_SECONDS,
    Basis,
    StopTime,
    evicts_from,
    known_stops,
    least_seconds,
    stop_of,
)
from plimsoll.domain.disruptions.tolerant_pods import (
    NAME_TOLERATIONS,
    tolerant_workloads,
)
from plimsoll.domain.disruptions.workload_disruption import (
    PATIENCE,
    BudgetRule,
    Cause,
    EvictablePod,
    WorkloadDisruption,
    is_available,
)

__all__ = [
    "ASSUMED_SECONDS",
    "DRAIN",
    "LEAST_SECONDS",
    "NAME_TOLERATIONS",
    "PATIENCE",
    "Allowance",
    "Basis",
    "BudgetRule",
    "Cause",
    "EvictablePod",
    "StopTime",
    "WorkloadDisruption",
    "by_node",
    "died_on",
    "disruptions_of",
    "ended_by_owner",
    "evicts_from",
    "guard_name",
    "guards_at_warning",
    "guards_of",
    "has_returned",
    "held_on",
    "is_available",
    "kept_of",
    "known_stops",
    "least_seconds",
    "left_on",
    "left_to_pod_gc",
    "misread_opt_outs",
    "of_present_launches",
    "one_node_claims",
    "opted_out_on",
    "plan_guard",
    "released_by_drain",
    "stop_of",
    "tolerant_workloads",
    "why_never_released",
    "why_not_released",
    "why_opted_out",
    "why_over",
]
