"""The dashboards of Ray clusters whose images nobody runs: an HTTP proxy that answers for each of them."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Self, override


class RayDashboards(AbstractContextManager["RayDashboards"]):
    """Every Ray job is in one state, and stops at once."""

    def __init__(self) -> None:
        self.job_status = "RUNNING"
        dashboards = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer({"status": dashboards.job_status})

            def do_POST(self) -> None:
                self._answer({"stopped": True})

            def _answer(self, body: object) -> None:
                data = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            @override
            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    @property
    def environment(self) -> dict[str, str]:
        """By which a program in Go asks here instead of at names that lead nowhere."""
        return {"HTTP_PROXY": f"http://127.0.0.1:{self._server.server_port}"}

    @override
    def __enter__(self) -> Self:
        self._thread.start()
        return self

    @override
    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
