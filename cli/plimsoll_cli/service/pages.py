"""Reads a list of the service to its end, page after page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlencode

from plimsoll.domain.errors import Refused
from plimsoll_agent.service import Service
from plimsoll_service.wire.pages import Page

PAGE_ROWS: Final = 200
"""The most that the service takes."""
MOST_PAGES: Final = 10_000


def pages[T: Page](
    service: Service, path: str, kind: type[T], query: Mapping[str, str] | None = None
) -> Iterator[T]:
    """Yield the pages of a list.

    Args:
        service: as somebody who logged in.
        path: of the list.
        kind: what a page is.
        query: the filters.

    Raises:
        Refused: the list does not end, or the service says twice where to read on.
    """
    asked, seen = {**(query or {}), "limit": str(PAGE_ROWS)}, set[str]()
    while len(seen) < MOST_PAGES:
        page = service.call("GET", path, kind, query=urlencode(asked))
        yield page
        if page.next is None:
            return
        if page.next in seen:
            break
        seen.add(page.next)
        asked["after"] = page.next
    raise Refused(f"the service gives no end of {path}: tell its operator")
