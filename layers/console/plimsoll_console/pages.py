"""What a view takes and gives. A view is pure: a request and what its source knows go in, a page comes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from plimsoll_console.sources import Source

type Method = Literal["GET", "POST"]

LONGEST_FORM: Final = 4000
"""Bytes that a form may send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request, past every check of who sent it."""

    named: Mapping[str, str] = field(default_factory=dict)
    """What stands in the path in the place of `{name}`."""
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    """What a form sends."""
    fragment: bool = False
    """Whether a script asks for the living part of the page only."""
    whole: bool = False
    """Whether all rows are wanted at once: a file has no next page."""

    def number(self, name: str) -> float | None:
        """Return a number of the query; None where there is none, or no number."""
        try:
            found = float(self.query[name])
        except (KeyError, ValueError):
            return None
        return found if 0 <= found < 1e9 else None  # noqa: PLR2004 - neither NaN nor infinity


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What is shown: a template and what it needs, or another place."""

    template: str = ""
    fragment: str = ""
    """The template of its living part."""
    given: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    to: str = ""
    """Where to go instead, from the root of the console."""


NOTHING_NEW = Page(status=204)

type View = Callable[[Request, Source], Page]


class Route(NamedTuple):
    """One line of the table of routes."""

    method: Method
    path: str
    view: View


def url(*parts: str, **query: object) -> str:
    """Return a link from the root of the console. Names are hostile: each part is escaped.

    A slash is escaped twice, since servers undo it once before they split the path: the context of an EKS cluster is
    an ARN with a slash.
    """
    asked = urlencode({name: value for name, value in query.items() if value not in {None, ""}})
    escaped = (part.replace("%", "%25").replace("/", "%2F") for part in parts)
    return "/".join(quote(part, safe="") for part in escaped) + (f"?{asked}" if asked else "")


def name_in(part: str) -> str:
    """Return the name in a part of a path, as a server hands it over."""
    return part.replace("%2F", "/").replace("%25", "%")


def form_in(body: bytes) -> Mapping[str, str]:
    """Return what a form sent; of one that is too long nothing."""
    if len(body) > LONGEST_FORM:
        return {}
    return dict(parse_qsl(body.decode("utf-8", "replace")))


def missing(what: str, cure: str = "") -> Page:
    """Return the page that says that something is not there."""
    return Page(template="error.html.j2", given={"title": what, "cure": cure}, status=404)
