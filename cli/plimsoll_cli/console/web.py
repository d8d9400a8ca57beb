"""The console on loopback: the table of routes over Starlette, for the one person who holds the link.

A link works once and leaves a cookie. A request needs the cookie, names this server as its host, and reads only. No
page may load or run anything that is not served here.
"""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request as HttpRequest
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route as HttpRoute

from plimsoll_console.answers import HEADERS, Answer, answer, file
from plimsoll_console.pages import (
    LONGEST_FORM,
    Page,
    Request,
    Route,
    form_in,
    missing,
    name_in,
)
from plimsoll_console.rendering import Place
from plimsoll_console.routes import ROUTES
from plimsoll_console.sources import Source

_LONGEST_PATH: Final = 4000

type Endpoint = Callable[[HttpRequest], Awaitable[Response]]


@dataclass(slots=True, kw_only=True)
class Access:
    """Who may look: whoever opened the link first."""

    port: int
    link: str | None = field(default_factory=lambda: secrets.token_urlsafe(24))
    """What the link carries; None once it was used."""
    session: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @property
    def cookie(self) -> str:
        """The name of the cookie: all ports of a host share their cookies."""
        return f"plimsoll-{self.port}"

    @property
    def hosts(self) -> frozenset[str]:
        """What a browser calls this server. Any other name was pointed here by somebody else's DNS."""
        return frozenset({f"127.0.0.1:{self.port}", f"localhost:{self.port}"})

    def url(self) -> str:
        """Return the link."""
        return f"http://127.0.0.1:{self.port}/?link={self.link}"

    def opens(self, request: HttpRequest) -> bool:
        """Whether the request carries the link; it works once."""
        given = request.query_params.get("link", "")
        if self.link is None or not secrets.compare_digest(given.encode(), self.link.encode()):
            return False
        self.link = None
        return True

    def knows(self, request: HttpRequest) -> bool:
        """Whether the request comes from who opened the link."""
        given = request.cookies.get(self.cookie, "")
        return secrets.compare_digest(given.encode(), self.session.encode())


def application(source: Source, access: Access) -> Starlette:
    """Return the console of a source."""

    def endpoint(route: Route) -> Endpoint:
        async def answered(http: HttpRequest) -> Response:
            refused = _refused(http, access)
            if refused is not None:
                return refused
            query = {name: value for name, value in http.query_params.items() if name != "link"}
            fragment = http.headers.get("hx-request") == "true"
            form = await _form(http) if http.method == "POST" else {}
            named = {key: name_in(part) for key, part in http.path_params.items()}
            asked = Request(named=named, query=query, form=form, fragment=fragment)
            place = Place(path=http.url.path, fragment=fragment)
            return _sent(answer(route.view(asked, source), place, source))

        return answered

    async def filed(http: HttpRequest) -> Response:
        if http.headers.get("host") not in access.hosts:
            return _sent(Answer(status=404))
        return _sent(file(http.path_params["name"]))

    async def nothing(http: HttpRequest, _: Exception) -> Response:
        refused = _refused(http, access)
        if refused is not None:
            return refused
        place = Place(path=http.url.path)
        return _sent(answer(missing("There is no such page."), place, source))

    async def failed(http: HttpRequest, error: Exception) -> Response:
        title = f"This page failed by a bug of Plimsoll: {type(error).__name__}."
        page = Page(
            template="error.html.j2",
            given={"title": title, "cure": "The terminal shows where."},
            status=500,
        )
        return _sent(answer(page, Place(path=http.url.path), source))

    return Starlette(
        routes=[
            HttpRoute("/static/{name}", filed, methods=["GET"]),
            *(HttpRoute(each.path, endpoint(each), methods=[each.method]) for each in ROUTES),
        ],
        middleware=[Middleware(GZipMiddleware, minimum_size=500)],
        exception_handlers={404: nothing, 405: nothing, 500: failed},
    )


def listening() -> socket.socket:
    """Return a socket on loopback, on a port that is free."""
    return socket.create_server(("127.0.0.1", 0))


def server(source: Source, access: Access) -> uvicorn.Server:
    """Return the server of a source: `run(sockets=[…])` serves until it is told to end."""
    config = uvicorn.Config(
        application(source, access),
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    config.load()  # what serves is loaded before the source begins to load what it needs
    return uvicorn.Server(config)


async def _form(http: HttpRequest) -> Mapping[str, str]:
    """Return what a form sends; more than its bound is not read."""
    body = b""
    async for part in http.stream():
        body += part
        if len(body) > LONGEST_FORM:
            break
    return form_in(body)


@contextmanager
def served(source: Source) -> Iterator[Access]:
    """Serve a source in a thread until the context ends: for tests and pictures."""
    with listening() as socket:
        access = Access(port=socket.getsockname()[1])
        console = server(source, access)
        thread = threading.Thread(target=console.run, kwargs={"sockets": [socket]})
        thread.start()
        try:
            yield access
        finally:
            console.should_exit = True
            thread.join()


def _refused(http: HttpRequest, access: Access) -> Response | None:
    """Return why a request is not answered, or what opens the console; None: it may be answered."""
    headers = dict(HEADERS)
    if http.headers.get("host") not in access.hosts:
        return Response("This host is not served here.\n", 421, headers=headers)
    if len(http.url.path) > _LONGEST_PATH:
        return Response("The path is too long.\n", 414, headers=headers)
    if http.method == "POST" and http.headers.get("sec-fetch-site") != "same-origin":
        return Response("Another site sent this.\n", 403, headers=headers)
    if http.url.path == "/" and access.opens(http):
        opened = RedirectResponse("/", 303, headers=headers)
        opened.set_cookie(access.cookie, access.session, httponly=True, samesite="lax", path="/")
        return opened
    if not access.knows(http):
        words = (
            "Open the console by the link that it printed. A link works once, in one browser: start the console anew "
            "for another.\n"
        )
        return Response(words, 403, headers=headers, media_type="text/plain")
    return None


def _sent(answered: Answer) -> Response:
    return Response(answered.body, answered.status, headers=dict(answered.headers))
