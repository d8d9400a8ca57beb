"""Interruptions afterwards: what did each cost, and why was each step taken?"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from plimsoll.domain.reports import Outcome, Report
from plimsoll_console.pages import Page, Request, missing
from plimsoll_console.sources import Source

PAGE = 50
_LEVELS: Final[Mapping[Outcome, str]] = {
    "killed": "bad",
    "below floor": "bad",
    "past a budget": "warn",
    "unhurt": "ok",
    "under way": "go",
}
_STEPS = (
    ("cordoned", "cordoned"),
    ("capacity_asked", "capacity requested"),
    ("replaced", "every pod replaced"),
    ("emptied", "empty"),
    ("gone", "instance gone"),
    ("closed", "closed"),
)


def interruptions(request: Request, source: Source) -> Page:
    """List the interruptions of a cluster, the newest first."""
    state = source.state(request.named["cluster"])
    if state is None:
        return missing(f"There is no cluster {request.named['cluster']}.")
    start = int(request.number("from") or 0)
    return Page(
        template="interruptions.html.j2",
        given={
            "here": "interruptions",
            "cluster": state.name,
            "reports": [(each, _word(each)) for each in state.reports[start : start + PAGE]],
            "of": len(state.reports),
            "next": start + PAGE if start + PAGE < len(state.reports) else None,
            "source": source,
        },
    )


def interruption(request: Request, source: Source) -> Page:
    """Show one interruption by its report."""
    state = source.state(request.named["cluster"])
    if state is None:
        return missing(f"There is no cluster {request.named['cluster']}.")
    name = request.named["interruption"]
    report = next((each for each in state.reports if each.interruption == name), None)
    if report is None:
        return missing(f"{state.name} has no report of {name}.", "Reports are kept for 90 days.")
    return Page(
        template="interruption.html.j2",
        given={
            "here": "interruptions",
            "cluster": state.name,
            "report": report,
            "word": _word(report),
            "steps": [
                (words, after(report, getattr(report, field)))
                for field, words in _STEPS
                if getattr(report, field) is not None
            ],
            "given": after(report, report.deadline),
            "lowest": [
                (ref, ready, report.below_floor.get(ref, 0))
                for ref, ready in sorted(report.lowest_ready.items())
            ],
            "reasons": [(each, after(report, each.first)) for each in report.reasons],
        },
    )


def after(report: Report, time: datetime | None) -> float | None:
    """Return how many seconds after the notice a time is."""
    return None if time is None else (time - report.noticed).total_seconds()


def _word(report: Report) -> tuple[str, str]:
    count = {
        "killed": len(report.killed),
        "below floor": len(report.below_floor),
        "past a budget": len(report.overruled),
    }.get(report.outcome)
    words = report.outcome if count is None else f"{count} {report.outcome}"
    return words, _LEVELS[report.outcome]
