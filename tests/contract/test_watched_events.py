"""A watch over HTTP takes no more memory than it may, whatever the API server has to tell."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Final

import pytest
from msgspec import Raw

from plimsoll.adapters.kubernetes.client import ClientTransport
from plimsoll.adapters.kubernetes.events import WAITING_BYTES
from plimsoll.adapters.kubernetes.transport import Events

PATIENCE: Final = 20.0
"""Seconds, of a machine that is not this test's alone."""
LINE: Final = json.dumps({"type": "MODIFIED", "object": {"padding": "x" * 2**20}}).encode() + b"\n"


class Flooding(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        if "watch" not in self.path:
            self.wfile.write(b'{"calm": true}')
            return
        with suppress(OSError):  # the other side has enough
            while True:
                self.wfile.write(LINE)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
        """Say nothing."""


@pytest.fixture
def flooded() -> Iterator[ClientTransport]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Flooding) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        yield ClientTransport(f"http://127.0.0.1:{server.server_port}", connections=1)
        server.shutdown()


def lines(events: Events) -> list[bytes]:
    return [bytes(line) for line in events.take() if isinstance(line, Raw)]


def test_a_watch_that_nobody_takes_from_ends_and_loses_nothing_that_came(flooded: ClientTransport):
    answer = flooded.call("GET", "/api/v1/pods", query={"watch": "1", "timeoutSeconds": "15"})
    events = answer.events
    assert events is not None
    end = time.monotonic() + PATIENCE
    while not events.over and time.monotonic() < end:
        time.sleep(0.01)
    assert events.over
    waiting = lines(events)
    assert WAITING_BYTES < sum(map(len, waiting)) < 1.2 * WAITING_BYTES
    assert all(line + b"\n" == LINE for line in waiting)
    events.close()
    assert flooded.call("GET", "/api/v1/pods").body == {"calm": True}  # by a connection of its own


def test_a_watch_that_is_taken_from_goes_on(flooded: ClientTransport):
    answer = flooded.call("GET", "/api/v1/pods", query={"watch": "1", "timeoutSeconds": "15"})
    events = answer.events
    assert events is not None
    taken, end = 0, time.monotonic() + PATIENCE
    while taken < 3 * WAITING_BYTES and time.monotonic() < end:
        taken += sum(map(len, lines(events)))
    assert taken >= 3 * WAITING_BYTES
    assert not events.over
    events.close()
