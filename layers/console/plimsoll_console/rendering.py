"""Pages as HTML: links relative to the depth of the page, and the files beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment
from markupsafe import Markup

from plimsoll_console import drawing
from plimsoll_console.environment import environment
from plimsoll_console.pages import Page, url
from plimsoll_console.sources import Source
from plimsoll_console.tokens import tokens
from plimsoll_console.views.storm import node_word

STYLE: Final = "console.css"
STATIC: Final[Mapping[str, str]] = {
    STYLE: "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "htmx.min.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""Files that are served as they are, and their types."""
_FILES: Final = Path(__file__).with_name("static")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a page stands."""

    path: str
    fragment: bool = False
    alone: bool = False
    """Whether it is a file, with neither server nor other pages beside it."""

    @property
    def root(self) -> str:
        """The way from the page to the root of the console: links hold behind any prefix."""
        return "../" * (self.path.strip("/").count("/")) if self.path.strip("/") else ""


@cache
def static(name: str) -> bytes:
    """Return a file of the console."""
    found = _FILES.joinpath(name).read_bytes()
    return tokens().encode() + found if name == STYLE else found


@cache
def versions() -> Mapping[str, str]:
    """Return a part of the digest of each file: a browser keeps what has not changed."""
    return {name: sha256(static(name)).hexdigest()[:12] for name in STATIC}


def rendered(page: Page, place: Place, source: Source) -> str:
    """Return a page as HTML, or its living part alone."""
    name = page.template
    if place.fragment and page.fragment:
        name = page.fragment
    given: dict[str, Any] = {"cluster": None, "here": "", "title": "", "person": None} | dict(
        page.given
    )
    frame = page.given.get("frame")

    def until(seconds: float) -> int:
        return round((frame.storm + timedelta(seconds=seconds)).timestamp() * 1000) if frame else 0

    return (
        _environment()
        .get_template(name)
        .render(
            **given,
            root=place.root,
            alone=place.alone,
            style=Markup(static(STYLE).decode()) if place.alone else "",  # noqa: S704 - ours
            at=source.now(),
            until=until,
            source_kind=source.kind,
            watched=source.title,
        )
    )


def ident(prefix: str, name: str) -> str:
    """Return an id for a row: names may hold anything, and focus follows the id when rows are sorted anew."""
    return f"{prefix}-{sha256(name.encode()).hexdigest()[:12]}"


@cache
def _environment() -> Environment:
    made = environment()
    made.globals |= {
        "draw": drawing,
        "url": url,
        "ident": ident,
        "node_word": node_word,
        "versions": versions(),
    }
    return made
