"""What agents report: which snapshot counts, usage and rollups of it, and what people see of it."""

from __future__ import annotations

from plimsoll_service.domain.snapshots.arrivals import Arrival, Newest, newest_after
from plimsoll_service.domain.snapshots.billed import Billed
from plimsoll_service.domain.snapshots.rollups import (
    Rollup,
    Span,
    Totals,
    combined_rollup,
    due_rollups,
    rollup_of,
)
from plimsoll_service.domain.snapshots.usage import (
    MIB,
    ContainerUsage,
    WorkloadUsage,
    sum_of,
    unpacked,
)
from plimsoll_service.domain.snapshots.views import (
    interrupted_nodes,
    period_of,
    pool_rows,
    seen_columns,
    workload_rows,
)

__all__ = [
    "MIB",
    "Arrival",
    "Billed",
    "ContainerUsage",
    "Newest",
    "Rollup",
    "Span",
    "Totals",
    "WorkloadUsage",
    "combined_rollup",
    "due_rollups",
    "interrupted_nodes",
    "newest_after",
    "period_of",
    "pool_rows",
    "rollup_of",
    "seen_columns",
    "sum_of",
    "unpacked",
    "workload_rows",
]
