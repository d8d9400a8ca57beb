"""Savings: what was foreseen, and what do the bills since then show?"""

from __future__ import annotations

from typing import Final

from plimsoll_console.hosted.asked import Asked, listed
from plimsoll_console.pages import Page, Request
from plimsoll_service.services.cluster_rows import CLUSTER
from plimsoll_service.services.savings import SAVED_FILTERS, saved_page, savings_history

PAGE: Final = 50


def savings(request: Request, asked: Asked) -> Page:
    """List what each cluster that the person may see saved in a month.

    Raises:
        Malformed: the query names no such page or filter.
    """
    wanted = listed(request, CLUSTER, SAVED_FILTERS)
    found = saved_page(asked.data, wanted.page, asked.now, asked.sees)
    given = wanted.given
    return Page(
        template="hosted/savings.html.j2",
        given={
            **given,
            "here": "savings",
            "found": found,
            "next": found.next,
            "filters": {**given["filters"], "month": found.month},
            "choices": {**given["choices"], "month": found.months},
        },
    )


def cluster_savings(request: Request, asked: Asked) -> Page:
    """Show the last quarter of a cluster by month, and what each accepted recommendation saved."""
    found = savings_history(asked.data, asked.cluster, None, asked.now)
    rows = found.recommendations
    start = int(request.number("from") or 0)
    return Page(
        template="hosted/cluster_savings.html.j2",
        given={
            "here": "savings",
            "cluster": request.named["cluster"],
            "found": found,
            "rows": rows[start : start + PAGE],
            "next": start + PAGE if start + PAGE < len(rows) else None,
        },
    )
