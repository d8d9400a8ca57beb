"""What interruptions, rehearsals and placement did and why, and the metrics that alarms read."""

from __future__ import annotations

from plimsoll.domain.reports.announcements import announcement, interruption_metrics
from plimsoll.domain.reports.canaries import CANARY_REPORTS, canary_echo, canary_seen
from plimsoll.domain.reports.metrics import Metric
from plimsoll.domain.reports.reasons import LEFT_OUT, NOTE, WAIT, Reason, merge_reasons, summary
from plimsoll.domain.reports.rehearsals import (
    ONE_EVENT_WITHIN,
    Comparison,
    compare_rehearsals,
    rehearsal_report,
    rehearsals_of,
)
from plimsoll.domain.reports.report import PLACEMENT, SCALE_UP, Outcome, Report
from plimsoll.domain.reports.scores import (
    Judged,
    Kept,
    Score,
    WorkloadScore,
    months_until,
    scored,
    told_since,
)

__all__ = [
    "CANARY_REPORTS",
    "LEFT_OUT",
    "NOTE",
    "ONE_EVENT_WITHIN",
    "PLACEMENT",
    "SCALE_UP",
    "WAIT",
    "Comparison",
    "Judged",
    "Kept",
    "Metric",
    "Outcome",
    "Reason",
    "Report",
    "Score",
    "WorkloadScore",
    "announcement",
    "canary_echo",
    "canary_seen",
    "compare_rehearsals",
    "interruption_metrics",
    "merge_reasons",
    "months_until",
    "rehearsal_report",
    "rehearsals_of",
    "scored",
    "summary",
    "told_since",
]
