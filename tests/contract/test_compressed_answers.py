"""An API server compresses large answers for clients that ask for it, and ours does."""

from __future__ import annotations

import gzip
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from plimsoll.adapters.kubernetes.client import ClientTransport


class Compressing(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        asked = self.headers.get("Accept-Encoding", "")
        body = json.dumps({"asked": asked}).encode()
        self.send_response(200)
        if "gzip" in asked:
            body = gzip.compress(body, 1)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
        """Say nothing."""


def test_a_compressed_answer_is_asked_for_and_read():
    with ThreadingHTTPServer(("127.0.0.1", 0), Compressing) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        transport = ClientTransport(f"http://127.0.0.1:{server.server_port}")
        answer = transport.call("GET", "/api/v1/pods")
        server.shutdown()
    assert (answer.status, answer.body) == (200, {"asked": "gzip"})
