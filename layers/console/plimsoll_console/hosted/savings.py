"""Savings: what was foreseen of what somebody accepted, and what became of it?"""

from __future__ import annotations

from typing import Final

from plimsoll_console.hosted.asked import Asked
from plimsoll_console.pages import Page, Request
from plimsoll_service.services.recommendations import SAVINGS, recommendations
from plimsoll_service.services.stored import stored
from plimsoll_service.wire.advice import Advice

PAGE: Final = 50
_TAKEN: Final = frozenset({"accepted", "done"})


def cluster_savings(request: Request, asked: Asked) -> Page:
    """Show what a cluster costs, and what was foreseen and measured of each accepted recommendation."""
    kept = recommendations(asked.data, asked.cluster).recommendations
    rows = [each for each in kept if each.state in _TAKEN]
    start = int(request.number("from") or 0)
    return Page(
        template="hosted/savings.html.j2",
        given={
            "here": "savings",
            "cluster": request.named["cluster"],
            "advice": stored(asked.data, asked.cluster, SAVINGS, Advice)[0],
            "rows": rows[start : start + PAGE],
            "next": start + PAGE if start + PAGE < len(rows) else None,
        },
    )
