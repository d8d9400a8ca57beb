"""The report of placement: one for each cluster and day, of what its runs did and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, time

from plimsoll.domain.actions import Action, Release
from plimsoll.domain.kubernetes import RELEASED_FOR_PLACEMENT
from plimsoll.domain.reports import PLACEMENT, Reason, Report


def reports_of(cluster: str) -> str:
    """Return what the reports of placement stand under: beside those of interruptions, and no cluster's name."""
    return f"*{PLACEMENT}/{cluster}"


def words_of(actions: Iterable[Action], now: datetime) -> Sequence[str]:
    """Return what was done for placement; what a drain does for interruptions has reports of its own."""
    return [
        f"{now:%H:%M} {action.verb} {action.target}: {action.reason}"
        for action in actions
        if not isinstance(action, Release) or action.interruption == RELEASED_FOR_PLACEMENT
    ]


def report_of(cluster: str, done: Iterable[str], now: datetime) -> Report:
    """Return what one run adds to the report of its day."""
    day = datetime.combine(now, time(), now.tzinfo)
    return Report(
        interruption=f"{PLACEMENT}@{cluster}/{day:%Y-%m-%d}",
        cluster=reports_of(cluster),
        node="",
        kind=PLACEMENT,
        noticed=day,
        closed=now,
        reasons=tuple(Reason(why=words) for words in done),
    )
