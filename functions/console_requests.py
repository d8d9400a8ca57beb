"""What the console reads off a request of API Gateway, and how its answers go back."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from typing import Final

from chalice.app import Request, Response

from plimsoll_console.answers import HEADERS, Answer
from plimsoll_console.hosted.cookies import cookies_in
from plimsoll_console.pages import form_in
from plimsoll_console.rendering import Place

PREFIX: Final = "/console"
_SMALLEST_COMPRESSED_BYTES: Final = 500
_ONLY_OVER_TLS: Final = {"strict-transport-security": "max-age=31536000"}


def place_of(request: Request) -> Place:
    """Return where the page stands below the root of the console."""
    # Of a path that is no screen the gateway hands over the rest.
    path = (request.uri_params or {}).get("page") or request.path.removeprefix(PREFIX)
    return Place(path=path, fragment=header(request, "hx-request") == "true")


def header(request: Request, name: str) -> str:
    """Return a header; empty: there is none."""
    return str(request.headers.get(name, ""))


def query_of(request: Request) -> Mapping[str, str]:
    """Return the parameters of the query; of several of one name the last."""
    found: Mapping[str, str] = request.to_dict().get("query_params") or {}
    return found


def form_of(request: Request) -> Mapping[str, str]:
    """Return what a form sent."""
    body = request.raw_body
    return form_in(body if isinstance(body, bytes) else body.encode())


def cookies_of(request: Request) -> Mapping[str, str]:
    """Return the cookies. HTTP/2 lets a browser send them in several headers."""
    event = request.to_original_event()
    every: Mapping[str, Sequence[str]] = event.get("multiValueHeaders") or {}
    found = [each for name, values in every.items() if name.lower() == "cookie" for each in values]
    return cookies_in(found or [header(request, "cookie")])


def to(place: str) -> Answer:
    """Return the answer that leads to another place."""
    return Answer(status=303, headers={**HEADERS, "location": place})


def sent(request: Request, said: Answer, *cookies: str) -> Response:
    """Return an answer as Chalice sends it: bytes, compressed for whoever takes that."""
    headers: dict[str, str | list[str]] = {**said.headers, **_ONLY_OVER_TLS}
    body = said.body
    if len(body) > _SMALLEST_COMPRESSED_BYTES and "gzip" in header(request, "accept-encoding"):
        body = gzip.compress(body, mtime=0)
        headers |= {"content-encoding": "gzip", "vary": "accept-encoding"}
    if cookies:
        headers["set-cookie"] = [*cookies]
    return Response(body, headers=headers, status_code=said.status)
