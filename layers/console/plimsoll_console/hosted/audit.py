"""The audit: who did what, and what came of it?"""

from __future__ import annotations

from typing import Final

from plimsoll_console.hosted.asked import Asked
from plimsoll_console.pages import Page, Request
from plimsoll_service.services.paging import Filter, cut, page_request
from plimsoll_service.wire.audit import Action

_OUTCOMES: Final = ("done", "refused")
_FILTERS: Final = {
    "action": Filter(description="what was done", values=tuple(Action)),
    "outcome": Filter(description="what came of it", values=_OUTCOMES),
}
_LAST: Final = "~"
"""Behind all keys of rows: they begin with a year."""


def audit(request: Request, asked: Asked) -> Page:
    """List the rows of the tenant, the newest first."""
    query = {name: value for name, value in request.query.items() if value}
    page = page_request(query, prefix="", filters=_FILTERS)
    wanted = page.filters
    found = cut(
        asked.data.audit.list("", page.after or _LAST),
        page,
        key=lambda row: row[0],
        keep=lambda row: all(getattr(row[1], name) == value for name, value in wanted.items()),
        descending=True,
    )
    return Page(
        template="hosted/audit.html.j2",
        given={
            "here": "audit",
            "rows": [entry for _, entry in found.items],
            "next": found.next,
            "after": page.after,
            "actions": tuple(Action),
            "action": wanted.get("action", ""),
            "outcomes": _OUTCOMES,
            "outcome": wanted.get("outcome", ""),
        },
    )
