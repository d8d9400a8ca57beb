"""A fake cluster behind HTTP, on loopback and a free port, for the unchanged official client.

One lock holds the cluster together: every request takes it, and so must whoever else drives the
cluster meanwhile. While the API server is away (`FakeCluster.take_api_away`) connections are
reset, also those that were open.

Left out: TLS, users (one bearer token may do everything), HTTP/2, compression.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Final, Self, override

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from plimsoll.adapters.clock import SystemClock
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.edits import Json
from plimsoll_simulation.fake_cluster.refusals import (
    RefusedError,
    bad_request,
    no_such_page,
    unauthorized,
)
from plimsoll_simulation.fake_cluster.routes import target_of
from plimsoll_simulation.fake_cluster.store import Change
from plimsoll_simulation.fake_cluster.watching import Watch

BEAT: Final = 0.02
"""Seconds between two checks for what is due, where nobody else drives the cluster."""
_OPEN: Final = frozenset({"/version", "/readyz", "/livez", "/healthz"})
"""What may be read without a token, as by the role system:public-info-viewer."""
_WATCH_SECONDS: Final = 300
_PATIENCE: Final = 300
"""Seconds that an idle connection stays open: clients keep theirs in pools."""


class FakeApiServer(AbstractContextManager["FakeApiServer"]):
    """Serves one cluster in a thread of its own; use it as a context manager.

    Args:
        cluster: what is served.
        lock: held around every use of the cluster, by a thread perhaps twice; one of its own where
            none is given.
        now: returns the time, having let happen what is due by then. Where it is not given, the
            wall clock is taken and the server drives the cluster itself.
        changed: called under the lock after every request that was handled.
        called: called with the verb of every request that was handled.
        port: 0 takes a free one.
    """

    def __init__(  # noqa: PLR0913 - all but the first are optional
        self,
        cluster: FakeCluster,
        *,
        lock: AbstractContextManager[Any] | None = None,
        now: Callable[[], datetime] | None = None,
        changed: Callable[[], None] = lambda: None,
        called: Callable[[str], None] = lambda _: None,
        port: int = 0,
    ) -> None:
        self.cluster = cluster
        self.lock: Final[AbstractContextManager[Any]] = lock or threading.RLock()
        self.token: Final = secrets.token_urlsafe(24)
        self._now = now or SystemClock().now
        self._drives = now is None
        self._changed = changed
        self._called = called
        self._port = port
        self._finalize = False
        self.error: Exception | None = None
        """What ended the server's own driving of the cluster, if something did."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._bells: set[asyncio.Event] = set()
        self._thread = threading.Thread(target=self._run, name="fake cluster", daemon=True)
        self._begun = threading.Event()
        self._socket: socket.socket | None = None
        self._server = uvicorn.Server(self._config())

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._port}"

    @override
    def __enter__(self) -> Self:
        """Listen and serve.

        Raises:
            OSError: the port is in use.
        """
        self._socket = socket.create_server(("127.0.0.1", self._port), backlog=1024)
        self._port = self._socket.getsockname()[1]
        self.cluster.on_change(self._ring)
        self._thread.start()
        self._begun.wait()
        return self

    @override
    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._finalize = True
        self._server.should_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._ring_all)
        self._thread.join()
        if self.error is not None and error is None:
            raise self.error

    def _config(self) -> uvicorn.Config:
        return uvicorn.Config(
            Starlette(routes=[Route("/{path:path}", self._answer, methods=_METHODS)]),
            http=self._protocol(),
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_keep_alive=_PATIENCE,
            timeout_graceful_shutdown=2,
        )

    def _protocol(self) -> type[H11Protocol]:
        """Return uvicorn's protocol, but one that hangs up while the API server is away."""
        cluster = self.cluster

        class Reachable(H11Protocol):
            @override
            def data_received(self, data: bytes) -> None:
                if cluster.api_up:
                    super().data_received(data)
                else:
                    self.transport.abort()

        return Reachable

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        beat = asyncio.create_task(self._beat()) if self._drives else None
        self._begun.set()
        try:
            await self._server.serve(sockets=[self._socket] if self._socket else None)
        finally:
            if beat is not None:
                beat.cancel()

    async def _beat(self) -> None:
        while self.error is None:
            try:
                with self.lock:
                    self.cluster.step(self._now())
            except Exception as error:  # noqa: BLE001 - raised where the server is used
                self.error = error
            await asyncio.sleep(BEAT)

    async def _answer(self, request: Request) -> Response:
        path = request.url.path
        try:
            if path not in _OPEN:
                self._admit(request)
            body = _parsed(await request.body())
            if _true(request.query_params.get("watch")):
                return self._watch(request)
        except RefusedError as refused:
            return JSONResponse(refused.status, status_code=refused.code)
        with self.lock:
            try:
                answer = self.cluster.handle(
                    request.method,
                    path,
                    dict(request.query_params),
                    body,
                    request.headers.get("content-type", "application/json"),
                    now=self._now(),
                    user=request.headers.get("user-agent", ""),
                )
            except ConnectionRefusedError:  # it went away between the connection and now
                return Response(status_code=503)
            self._called(request.method)
            self._changed()
        return Response(
            _line(answer.body),
            status_code=answer.status,
            headers=dict(answer.headers),
            media_type="application/json",
        )

    def _admit(self, request: Request) -> None:
        given = request.headers.get("authorization", "")
        if not secrets.compare_digest(given.encode(), f"Bearer {self.token}".encode()):
            raise unauthorized()

    def _watch(self, request: Request) -> Response:
        target = target_of(request.url.path)
        if target is None or request.method != "GET":
            raise no_such_page()
        query = dict(request.query_params)
        with self.lock:
            watch = Watch(self.cluster.store, target, query)
        self._called("GET")
        seconds = float(query.get("timeoutSeconds") or _WATCH_SECONDS)
        bookmarks = _true(query.get("allowWatchBookmarks"))
        lines = self._follow(watch, seconds, bookmarks=bookmarks)
        return StreamingResponse(lines, media_type="application/json")

    async def _follow(
        self, watch: Watch, seconds: float, *, bookmarks: bool
    ) -> AsyncIterator[bytes]:
        """Yield the lines of a watch until its time is over or the API server goes away."""
        loop, bell = asyncio.get_running_loop(), asyncio.Event()
        end = loop.time() + seconds
        self._bells.add(bell)
        try:
            while not self._finalize and self.cluster.api_up and not watch.over:
                bell.clear()
                with self.lock:
                    events = list(watch.news())
                for event in events:
                    yield _line(event) + b"\n"
                left = end - loop.time()
                if left <= 0:
                    break
                await _heard(bell, min(left, 1.0))  # an outage rings no bell
            if bookmarks and not watch.over:
                yield _line(watch.bookmark) + b"\n"
        finally:
            self._bells.discard(bell)

    def _ring(self, _: Change) -> None:
        """Tell watches of a change, from whatever thread it was made in."""
        if self._bells and self._loop is not None and not self._finalize:
            self._loop.call_soon_threadsafe(self._ring_all)

    def _ring_all(self) -> None:
        for bell in self._bells:
            bell.set()


_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


def _true(text: str | None) -> bool:
    """Whether a query says yes; the Python client writes `True`."""
    return (text or "").lower() in {"1", "true"}


def _line(body: Json) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


def _parsed(body: bytes) -> Any:
    if not body:
        return None
    try:
        return json.loads(body)
    except ValueError as error:
        raise bad_request(f"the body is not JSON: {error}") from error


async def _heard(bell: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(bell.wait(), seconds)
    except TimeoutError:
        return
