"""Savings: what was foreseen, and what do the bills since then show?"""

from __future__ import annotations

from typing import Final

from plimsoll_console.hosted.asked import Asked
from plimsoll_console.pages import Page, Request
from plimsoll_service.services.savings import savings_history

PAGE: Final = 50


def cluster_savings(request: Request, asked: Asked) -> Page:
    """Show the last quarter of a cluster by month, and what each accepted recommendation saved."""
    found = savings_history(asked.data, asked.cluster, None, asked.now)
    rows = found.recommendations
    start = int(request.number("from") or 0)
    return Page(
        template="hosted/savings.html.j2",
        given={
            "here": "savings",
            "cluster": request.named["cluster"],
            "found": found,
            "rows": rows[start : start + PAGE],
            "next": start + PAGE if start + PAGE < len(rows) else None,
        },
    )
