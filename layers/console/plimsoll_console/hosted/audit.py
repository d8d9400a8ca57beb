"""The audit: who did what, and what came of it?"""

from __future__ import annotations

from plimsoll_console.hosted.asked import Asked
from plimsoll_console.pages import Page, Request
from plimsoll_service.services.audit_reads import FILTERS, audit_rows
from plimsoll_service.services.paging import page_request


def audit(request: Request, asked: Asked) -> Page:
    """List the rows of the tenant, the newest first.

    Raises:
        Malformed: the query names no such page or filter.
    """
    # A form sends the filters that are left open, too.
    query = {name: value for name, value in request.query.items() if value}
    page = page_request(query, prefix="", filters=FILTERS)
    found = audit_rows(asked.data, asked.person, page, asked.now)
    return Page(
        template="hosted/audit.html.j2",
        given={
            "here": "audit",
            "rows": found.items,
            "next": found.next,
            "first": not page.after,
            "filters": {name: page.filters.get(name, "") for name in FILTERS},
            "choices": {name: each.values for name, each in FILTERS.items()},
        },
    )
