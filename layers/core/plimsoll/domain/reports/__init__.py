"""What interruptions, rehearsals and placement did and why, and the metrics that alarms read."""

from __future__ import annotations

from plimsoll.domain.reports.announcements import announcement, costs
from plimsoll.domain.reports.canaries import CANARIES, echo_of, seen_in
from plimsoll.domain.reports.metrics import Metric
from plimsoll.domain.reports.rehearsals import (
    TOGETHER,
    Comparison,
    comparison,
    rehearsals_of,
    rehearsed,
)
from plimsoll.domain.reports.report import PLACEMENT, Report

__all__ = [
    "CANARIES",
    "PLACEMENT",
    "TOGETHER",
    "Comparison",
    "Metric",
    "Report",
    "announcement",
    "comparison",
    "costs",
    "echo_of",
    "rehearsals_of",
    "rehearsed",
    "seen_in",
]
