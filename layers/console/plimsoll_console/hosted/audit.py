"""The audit: who did what, and what came of it?"""

from __future__ import annotations

from plimsoll_console.hosted.asked import Asked, listed
from plimsoll_console.pages import Page, Request
from plimsoll_service.services.audit_reads import FILTERS, audit_rows


def audit(request: Request, asked: Asked) -> Page:
    """List the rows of the tenant, the newest first.

    Raises:
        Malformed: the query names no such page or filter.
    """
    wanted = listed(request, "", FILTERS)
    found = audit_rows(asked.data, asked.person, wanted.page, asked.now)
    return Page(
        template="hosted/audit.html.j2",
        given={"here": "audit", "rows": found.items, "next": found.next, **wanted.given},
    )
