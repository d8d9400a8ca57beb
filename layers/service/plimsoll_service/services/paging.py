"""How a page of a list is asked for and cut: one contract for every list of `/v1`.

A list has an order by a sort key, and each key begins with a prefix of the list. `after` is the last key of the
page before, in base64url. It is compared and never looked up, so that a row that is gone meanwhile does no harm.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from plimsoll_service.services.ports import Document, TenantData
from plimsoll_service.wire.documents import Malformed

PAGE_ROWS: Final = 50
MOST_PAGE_ROWS: Final = 200
MOST_ROWS_READ: Final = 1000
"""For one page: a filter that fits few rows of a long list ends a page early."""
MOST_AFTER_CHARACTERS: Final = 1368
"""A sort key of DynamoDB has at most 1,024 bytes."""
_AFTER: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{MOST_AFTER_CHARACTERS}}}")
_TEXT: Final = r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A parameter that says which rows a list keeps."""

    description: str
    values: tuple[str, ...] = ()
    """What it takes; empty: any word."""

    def schema(self) -> Mapping[str, object]:
        """Return the schema for the description of the API."""
        said: dict[str, object] = {"type": "string", "description": self.description}
        return said | ({"enum": list(self.values)} if self.values else {"pattern": rf"^{_TEXT}$"})

    def takes(self, text: str) -> bool:
        """Whether it takes a value."""
        return text in self.values if self.values else re.fullmatch(_TEXT, text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """Which page of a list is asked for."""

    limit: int = PAGE_ROWS
    after: str = ""
    """The sort key that the page follows; empty: it is the first one."""
    filters: Mapping[str, str] = field(default_factory=dict)
    """By the name of each filter that was given."""
    explicit: bool = False
    """Whether the request names `limit` or `after`, as clients that read pages do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows[T]:
    """The rows of a page."""

    items: tuple[T, ...]
    next: str | None
    """`after` of the next page; None: nothing follows."""


def query_schemas(filters: Mapping[str, Filter]) -> Mapping[str, Mapping[str, object]]:
    """Return the schemas of the parameters of a list, for the description of the API."""
    return {
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_PAGE_ROWS,
            "default": PAGE_ROWS,
            "description": "how many rows the page has at most",
        },
        "after": {
            "type": "string",
            "pattern": f"^{_AFTER.pattern}$",
            "description": "`next` of the page before",
        },
        **{name: each.schema() for name, each in filters.items()},
    }


def page_request(
    query: Mapping[str, str], *, prefix: str, filters: Mapping[str, Filter]
) -> PageRequest:
    """Return which page a query asks for.

    Args:
        query: as it came.
        prefix: how the sort keys of the list begin.
        filters: those that the list has, by name.

    Raises:
        Malformed: it names another parameter, or a value is none.
    """
    unknown = sorted(query.keys() - filters.keys() - {"limit", "after"})
    if unknown:
        known = ", ".join(("limit", "after", *filters))
        raise Malformed(f"there is no parameter {unknown[0][:64]!r}: the list takes {known}")
    given = {name: query[name] for name in filters if name in query}
    for name, value in given.items():
        if not filters[name].takes(value):
            raise Malformed(f"{value[:64]!r} is no {name}")
    return PageRequest(
        limit=_limit(query.get("limit", str(PAGE_ROWS))),
        after=_key(query["after"], prefix) if "after" in query else "",
        filters=given,
        explicit="limit" in query or "after" in query,
    )


def cut[T](
    rows: Iterable[T],
    asked: PageRequest,
    *,
    key: Callable[[T], str],
    keep: Callable[[T], bool] = lambda _: True,
    descending: bool = False,
) -> Rows[T]:
    """Return a page of rows.

    Args:
        rows: in the order of their keys; those up to `after` may be among them. Read as far as the page needs.
        asked: which page.
        key: returns the sort key of a row. No two rows have the same.
        keep: whether a row passes the filters.
        descending: whether the last key comes first.

    A page ends early after MOST_ROWS_READ rows, and says where to read on: it may then be short, or empty.
    """
    found, last, count = list[T](), "", 0
    for row in rows:
        its = key(row)
        if asked.after and (its >= asked.after if descending else its <= asked.after):
            continue
        if len(found) == asked.limit or count == MOST_ROWS_READ:
            return Rows(items=tuple(found), next=after_of(last))
        last, count = its, count + 1
        if keep(row):
            found.append(row)
    return Rows(items=tuple(found), next=None)


def documents_of(
    data: TenantData, cluster: str, prefix: str, asked: PageRequest, *, descending: bool = False
) -> Iterator[Document]:
    """Yield the documents whose keys begin with a prefix, from `after` on: for `cut`, with the same order."""
    first, last = prefix, f"{prefix}~"
    if asked.after:
        first, last = (first, asked.after) if descending else (asked.after, last)
    # One that `after` names, and one that shows that a page follows.
    limit = (MOST_ROWS_READ if asked.filters else asked.limit) + 2
    return data.list(cluster, first, last, limit=limit, descending=descending)


def after_of(key: str) -> str:
    """Return how a sort key goes over the wire."""
    return base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")


def _key(after: str, prefix: str) -> str:
    refused = Malformed(f"{after[:64]!r} is no page of this list: give `next` of the page before")
    if _AFTER.fullmatch(after) is None:
        raise refused
    try:
        key = base64.b64decode(f"{after}{'=' * (-len(after) % 4)}", altchars=b"-_").decode()
    except (binascii.Error, UnicodeError) as error:
        raise refused from error
    # Of several texts that decode to the same key only ours counts.
    if not key.startswith(prefix) or after_of(key) != after:
        raise refused
    return key


def _limit(text: str) -> int:
    digits = text if text.isascii() and text.isdecimal() and len(text) <= len("200") else "0"
    limit = int(digits)
    if not 1 <= limit <= MOST_PAGE_ROWS:
        raise Malformed(f"limit is a number from 1 to {MOST_PAGE_ROWS}, and not {text[:64]!r}")
    return limit
