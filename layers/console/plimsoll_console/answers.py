"""What is answered to a browser, whoever serves it: status, headers and bytes of a page or of a file beside it.

Who may ask is the server's to say: the console on loopback and a hosted one know different people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from plimsoll_console.pages import Page
from plimsoll_console.rendering import STATIC, Place, rendered, static
from plimsoll_console.sources import Source

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
"""Of every answer: a page loads and runs nothing that is not served here."""
HTML: Final = "text/html; charset=utf-8"
_FOREVER: Final = "private, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer over HTTP, with the names of its headers in small letters."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: HEADERS)
    body: bytes = b""


def answer(page: Page, place: Place, source: Source) -> Answer:
    """Return a page, its living part, or the redirect that it is."""
    if page.to:
        return Answer(status=303, headers={**HEADERS, "location": place.root + page.to})
    if not page.template:
        return Answer(status=page.status)
    return Answer(
        status=page.status,
        headers={**HEADERS, "content-type": HTML},
        body=rendered(page, place, source).encode(),
    )


def file(name: str) -> Answer:
    """Return a file below `static/`; its link carries its version, so a browser may keep it."""
    if name not in STATIC:
        return Answer(status=404)
    headers = {**HEADERS, "content-type": STATIC[name], "cache-control": _FOREVER}
    return Answer(headers=headers, body=static(name))
