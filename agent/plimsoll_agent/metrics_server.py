"""Serves `/metrics` and `/healthz`: no connection keeps another one waiting, however silent it is.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR, socket
from threading import Lock, Thread
from typing import Any, ClassVar, Final, override

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

MOST_CONNECTIONS: Final = 16
"""Each has a thread. One more closes the oldest: whoever sends a byte now and then holds nothing for long."""
SILENT_SECONDS: Final = 5.0
"""After this time without a byte a connection is closed."""


class _Handler(BaseHTTPRequestHandler):
    timeout: ClassVar[float | None] = SILENT_SECONDS
    server: MetricsServer

    def do_GET(self) -> None:
        if self.path.partition("?")[0] == "/healthz":
            good = self.server.healthy()
            words = b"ok\n" if good else b"no work was done lately\n"
            self._answer(200 if good else 503, "text/plain", words)
        else:
            encode, kind = choose_encoder(self.headers.get("Accept", ""))
            self._answer(200, kind, encode(self.server.registry))

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of each request."""


class MetricsServer(ThreadingHTTPServer):
    """Listens on one port of all addresses.

    Args:
        port: 0 takes a free one.
        registry: What is measured.
        healthy: Whether the agent still does its work.
    """

    request_queue_size = 64

    def __init__(self, port: int, registry: CollectorRegistry, healthy: Callable[[], bool]) -> None:
        super().__init__(("", port), _Handler)
        self.registry = registry
        self.healthy = healthy
        self._lock = Lock()
        self._open: dict[socket, None] = {}
        """Oldest first."""

    @override
    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own."""
        with self._lock:
            if len(self._open) >= MOST_CONNECTIONS:
                oldest = next(iter(self._open))
                del self._open[oldest]
                with suppress(OSError):  # its peer has gone
                    oldest.shutdown(SHUT_RDWR)
            # Counted before the thread starts: a flood of connections starts no more threads than this limit.
            self._open[request] = None
        super().process_request(request, client_address)

    @override
    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report a fault of ours; a peer that goes is none."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def serve(registry: CollectorRegistry, port: int, healthy: Callable[[], bool]) -> MetricsServer:
    """Serve in the background, and return the server."""
    server = MetricsServer(port, registry, healthy)
    Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server
