"""One self-contained page about a rehearsal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from plimsoll_cli.lab.rehearsal_rows import (
    ASKED,
    HEAD,
    MARKS,
    OBSTACLES,
    asked_rows,
    mark_rows,
    obstacle_rows,
    outcome_rows,
    verdict,
)
from plimsoll_simulation.output.page.document import rendered
from plimsoll_simulation.rehearsal.prediction import Prediction

HEADINGS: Final[Mapping[str, str]] = {
    "workloads": "Workloads",
    "marks": "What stays Ready",
    "capacity": "Capacity",
    "obstacles": "What is in the way",
    "notes": "What was assumed",
}
"""The parts of the page, in order."""


def rehearsal_page(found: Prediction) -> str:
    """Return the page as HTML."""
    given = {
        "headings": HEADINGS,
        "open_rows": 60,
        "title": f"Rehearsal of {found.cluster}",
        "columns": 1,
        "found": found,
        "facts": f"{found.at:%Y-%m-%d %H:%M} UTC · {found.scope}",
        "verdict": verdict(found),
        "head": HEAD,
        "rows": outcome_rows(found),
        "marks_head": MARKS,
        "marks": mark_rows(found),
        "asked_head": ASKED,
        "asked": asked_rows(found),
        "obstacles_head": OBSTACLES,
        "obstacles": obstacle_rows(found),
    }
    return rendered("rehearse.html.j2", given, package=__package__)
