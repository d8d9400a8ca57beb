"""A receiver of OTLP over HTTP on loopback, and the SDK that a layer brings, which sends to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, Self, override

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


@dataclass(frozen=True)
class Exported:
    """A span as it went over the wire."""

    name: str
    trace: str
    id: str
    parent: str
    """Empty: it is the first of its trace."""
    began: int
    ended: int
    """Nanoseconds since 1970."""
    facts: Mapping[str, str]
    """Without their prefix `plimsoll.`."""
    links: Sequence[str]
    """Ids of spans."""
    error: str


def _open() -> Event:
    gate = Event()
    gate.set()
    return gate


@dataclass
class Receiver:
    """Takes traces, while its block lasts."""

    gate: Event = field(default_factory=_open)
    """No request is answered until it is set, or for ten seconds."""
    asked: Event = field(default_factory=Event)
    """Set by the first request."""
    bodies: list[bytes] = field(default_factory=list)
    """Of the requests that are answered."""

    def __enter__(self) -> Self:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.path == "/v1/traces"
                receiver.asked.set()
                receiver.gate.wait(10)
                receiver.bodies.append(body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            @override
            def log_message(self, format: str, *args: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1/traces"

    @property
    def spans(self) -> Sequence[Exported]:
        return [
            Exported(
                name=span.name,
                trace=span.trace_id.hex(),
                id=span.span_id.hex(),
                parent=span.parent_span_id.hex(),
                began=span.start_time_unix_nano,
                ended=span.end_time_unix_nano,
                facts={
                    fact.key.removeprefix("plimsoll."): fact.value.string_value
                    for fact in span.attributes
                },
                links=[link.span_id.hex() for link in span.links],
                error=span.status.message,
            )
            for body in self.bodies
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@contextmanager
def exporting(url: str, pause_milliseconds: float = 5000) -> Iterator[TracerProvider]:
    """Export what is traced within the block, as a layer does: by a thread beside it, and the rest at its end."""
    exporter = OTLPSpanExporter(endpoint=url, timeout=1)
    provider = TracerProvider(
        resource=Resource({"service.name": "plimsoll"}), shutdown_on_exit=False
    )
    provider.add_span_processor(
        BatchSpanProcessor(exporter, schedule_delay_millis=pause_milliseconds)
    )
    try:
        yield provider
    finally:
        provider.shutdown()
