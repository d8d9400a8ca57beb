"""What the agent says: lines of JSON on standard output for people, metrics for Prometheus.

https://prometheus.io/docs/practices/naming/
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from threading import Lock
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    ProcessCollector,
)

from plimsoll.domain.reports import Metric
from plimsoll.services.ports import Clock

MOST_SAID: Final = 1000
"""Lines that are remembered so as not to be said again; tenants name the objects in them."""
_NAMESPACE: Final = "plimsoll_agent"


class Output:
    """Implements what the parts of the agent speak to: `Measures`, `GpuMeasures`, `Reporting`, `Telemetry`."""

    def __init__(self, clock: Clock) -> None:
        self.registry = CollectorRegistry()
        self._clock = clock
        self._lock = Lock()
        self._said: dict[str, None] = {}
        """Oldest first."""
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
        self._gpu_asked = gauge("gpu_exporters_asked", "Who was asked of GPUs for a snapshot.")
        self._gpu_answered = gauge("gpu_exporters_answered", "Those of them that answered.")
        self._gpu_left_out = gauge(
            "gpus_left_out", "GPUs and instances that were too many to tell."
        )
        self._gpu_alerts = gauge(
            "gpu_alerts",
            "Nodes that stay cordoned after a change of their GPUs until a person looks.",
        )
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

    def gpus_read(self, *, answered: int, asked: int, left_out: int) -> None:
        """Say how many exporters told of GPUs."""
        self._gpu_asked.set(asked)
        self._gpu_answered.set(answered)
        self._gpu_left_out.set(left_out)

    def gpu_alerts(self, nodes: int) -> None:
        """Say how many Nodes need a person."""
        self._gpu_alerts.set(nodes)

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
        """Say something unless it is among the last that were said."""
        with self._lock:
            if line in self._said:
                return
            if len(self._said) >= MOST_SAID:
                del self._said[next(iter(self._said))]
            self._said[line] = None
        self._say("info", line, {})

    def count(self, metric: Metric, value: float = 1, *, cluster: str | None = None) -> None:
        """Count nothing: these are the pipeline's."""

    def _say(self, level: str, message: str, facts: Mapping[str, object]) -> None:
        line = {"time": f"{self._clock.now():%Y-%m-%dT%H:%M:%SZ}", "level": level}
        sys.stdout.write(json.dumps({**line, "message": message, **facts}, default=str) + "\n")
        sys.stdout.flush()
