"""What the agent says: lines of JSON on standard output for people, metrics for Prometheus.

https://prometheus.io/docs/practices/naming/
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from threading import Thread
from typing import Any, Final, override
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    ProcessCollector,
    make_wsgi_app,
)

from plimsoll.domain.reports import Metric
from plimsoll.services.ports import Clock

_NAMESPACE: Final = "plimsoll_agent"


class Output:
    """Implements what the parts of the agent speak to: `Measures`, `Reporting`, `Telemetry`."""

    def __init__(self, clock: Clock) -> None:
        self.registry = CollectorRegistry()
        self._clock = clock
        self._said: set[str] = set()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)

        def counter(name: str, words: str, *labels: str) -> Counter:
            return Counter(name, words, labels, namespace=_NAMESPACE, registry=self.registry)

        def gauge(name: str, words: str) -> Gauge:
            return Gauge(name, words, namespace=_NAMESPACE, registry=self.registry)

        self._taken = counter("snapshots_taken", "Snapshots that were taken.", "kind")
        self._bytes = counter("snapshot_bytes", "Compressed bytes of them.", "kind")
        self._sent = counter("snapshots_sent", "Snapshots that the service took.")
        self._dropped = counter("snapshots_dropped", "Snapshots that were given up.", "why")
        self._failed = counter("failures", "What failed and is tried again.", "what")
        self._answers = counter(
            "instructions", "Instructions that were answered.", "kind", "outcome"
        )
        self._count = gauge("spooled_snapshots", "Snapshots that wait to be sent.")
        self._size = gauge("spooled_bytes", "Bytes of them on disk.")
        self._last = gauge("last_sent_timestamp_seconds", "When the service last took a snapshot.")

    def taken(self, *, full: bool, size: int) -> None:
        """Count a snapshot."""
        kind = "full" if full else "delta"
        self._taken.labels(kind).inc()
        self._bytes.labels(kind).inc(size)

    def sent(self, size: int) -> None:  # noqa: ARG002 - as the port has it
        """Count a snapshot that the service took."""
        self._sent.inc()
        self._last.set(self._clock.now().timestamp())

    def dropped(self, why: str) -> None:
        """Count a snapshot that was given up."""
        self._dropped.labels(why).inc()

    def failed(self, what: str) -> None:
        """Count a failure."""
        self._failed.labels(what).inc()

    def spooled(self, count: int, size: int) -> None:
        """Say what waits."""
        self._count.set(count)
        self._size.set(size)

    def answered(self, kind: str, outcome: str) -> None:
        """Count an instruction that was answered."""
        self._answers.labels(kind, outcome).inc()

    def log(self, message: str, **facts: object) -> None:
        """Say what was done."""
        self._say("info", message, facts)

    def warn(self, message: str, **facts: object) -> None:
        """Say what a person should look at when it repeats."""
        self._say("warning", message, facts)

    def once(self, line: str) -> None:
        """Say something unless it was said before."""
        if line not in self._said:
            self._said.add(line)
            self._say("info", line, {})

    def count(self, metric: Metric, value: float = 1, *, cluster: str | None = None) -> None:
        """Count nothing: these are the pipeline's."""

    def _say(self, level: str, message: str, facts: Mapping[str, object]) -> None:
        line = {"time": f"{self._clock.now():%Y-%m-%dT%H:%M:%SZ}", "level": level}
        sys.stdout.write(json.dumps({**line, "message": message, **facts}, default=str) + "\n")
        sys.stdout.flush()


class _Quiet(WSGIRequestHandler):
    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of each request."""


def serve(output: Output, port: int, healthy: Callable[[], bool]) -> WSGIServer:
    """Serve `/metrics` and `/healthz` in the background, and return the server.

    Args:
        output: what is measured.
        port: 0 takes a free one.
        healthy: whether the agent still does its work.
    """
    metrics = make_wsgi_app(output.registry)

    def app(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"] != "/healthz":
            found: Iterable[bytes] = metrics(environ, start)
            return found
        good = healthy()
        start("200 OK" if good else "503 Service Unavailable", [("Content-Type", "text/plain")])
        return [b"ok\n" if good else b"no work was done lately\n"]

    server = make_server("", port, app, handler_class=_Quiet)
    Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server
