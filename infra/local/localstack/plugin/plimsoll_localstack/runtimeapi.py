"""Lambda's Runtime API for one process: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html."""

from __future__ import annotations

import json
import queue
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, override

ROOT = "/2018-06-01/runtime"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One invocation."""

    id: str
    arn: str
    body: bytes
    trace: str
    seconds: float
    """What the function may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a process says of an invocation."""

    body: bytes
    is_error: bool


@dataclass(slots=True)
class RuntimeApi:
    """Serves one process on a free port of loopback. Use it as a context manager."""

    ready: Future[None] = field(default_factory=Future)
    """Done when the process asks for work; failed with its own words where it cannot start."""
    _calls: queue.SimpleQueue[Call | None] = field(default_factory=queue.SimpleQueue)
    _open: dict[str, Future[Answered]] = field(default_factory=dict)
    _server: ThreadingHTTPServer = field(init=False)
    _thread: threading.Thread = field(init=False)

    def __enter__(self) -> Self:
        """Begin to serve."""
        api = self

        class Handler(_Handler):
            runtime = api

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End: a process that waits for work is told that there is none."""
        self._calls.put(None)
        self._server.shutdown()
        self._server.server_close()

    @property
    def address(self) -> str:
        """What AWS_LAMBDA_RUNTIME_API says."""
        return f"127.0.0.1:{self._server.server_address[1]}"

    def ask(self, call: Call) -> Future[Answered]:
        """Hand out an invocation; the answer comes later."""
        future: Future[Answered] = Future()
        self._open[call.id] = future
        self._calls.put(call)
        return future

    def fail(self, why: str) -> None:
        """The process is gone: nothing that is open will be answered."""
        error = ConnectionError(why)
        if not self.ready.done():
            self.ready.set_exception(error)
        for future in list(self._open.values()):
            if not future.done():
                future.set_exception(error)

    def next(self) -> Call | None:
        """Return the next invocation, however long it takes to come; None at the end."""
        if not self.ready.done():
            self.ready.set_result(None)
        return self._calls.get()

    def answered(self, call: str, answer: Answered) -> bool:
        """Take an answer; return whether anybody waits for it."""
        future = self._open.pop(call, None)
        if future is None or future.done():
            return False
        future.set_result(answer)
        return True

    def cannot_start(self, why: str) -> None:
        """Take the process's word that it cannot start."""
        if not self.ready.done():
            self.ready.set_exception(ConnectionError(why))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    runtime: RuntimeApi

    def do_GET(self) -> None:
        if self.path != f"{ROOT}/invocation/next":
            self._say(HTTPStatus.NOT_FOUND)
            return
        call = self.runtime.next()
        if call is None:
            self._say(HTTPStatus.INTERNAL_SERVER_ERROR)
            return
        self._say(
            HTTPStatus.OK,
            call.body,
            {
                "Lambda-Runtime-Aws-Request-Id": call.id,
                "Lambda-Runtime-Deadline-Ms": str(int((time.time() + call.seconds) * 1000)),
                "Lambda-Runtime-Invoked-Function-Arn": call.arn,
                "Lambda-Runtime-Trace-Id": call.trace,
            },
        )

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        match self.path.removeprefix(f"{ROOT}/").split("/"):
            case ["init", "error"]:
                self.runtime.cannot_start(body.decode(errors="replace"))
            case ["invocation", call, "response" | "error" as kind]:
                self.runtime.answered(call, Answered(body=body, is_error=kind == "error"))
            case _:
                self._say(HTTPStatus.NOT_FOUND)
                return
        self._say(HTTPStatus.ACCEPTED, json.dumps({"status": "OK"}).encode())

    def _say(
        self, status: HTTPStatus, body: bytes = b"{}", headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the functions' own output is what matters in the log."""
