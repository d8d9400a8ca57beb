"""Handlers run as Lambda runs them; behind `bootstrap` stand fakes that say what the test wants."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll import bootstrap
from plimsoll.observability import logger
from plimsoll.services.wiring import Services


@dataclass
class Context:
    """What Lambda tells an invocation about itself."""

    function_name: str = "function"
    memory_limit_in_mb: int = 1024
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:function"
    aws_request_id: str = "00000000-0000-0000-0000-000000000001"
    milliseconds_left: int = 20_000

    def get_remaining_time_in_millis(self):
        return self.milliseconds_left


@dataclass
class FakeService:
    """Stands for a service: fails as it was told to."""

    answers: dict[str, Any] = field(default_factory=dict)
    asked: list[Any] = field(default_factory=list)
    traceparents: list[Any] = field(default_factory=list)

    def receive(self, bodies):
        self.asked.append(list(bodies))
        answers = [self.answers.get(body) for body in bodies]
        crash = next((a for a in answers if isinstance(a, Crash)), None)
        if crash:
            raise crash
        return answers

    def reconcile(self, cluster, holder, seconds, hurried, traceparent=None):
        self.traceparents.append(traceparent)
        self.asked.append((cluster, holder, seconds, hurried))
        self._fail(cluster)
        return 1

    def run(self, what="run", *, preflight=False):
        self.asked.append("preflight" if preflight else what)
        self._fail(what)
        return 0

    def _fail(self, what):
        if isinstance(self.answers.get(what), Exception):
            raise self.answers[what]


class Crash(Exception):  # noqa: N818 - a bug, in the words of the tests
    """Something that nobody meant to raise."""


@dataclass
class FakeQueue:
    """Stands for the notices queue and its dead-letter queue."""

    back: dict[str, int] = field(default_factory=dict)
    aside: list[Any] = field(default_factory=list)
    broken: Exception | None = None

    def come_back(self, receipt, *, seconds):
        self._break()
        self.back[receipt] = seconds

    def set_aside(self, body, *, reason, message_id, attempts):
        self._break()
        self.aside.append((body, reason, message_id, attempts))

    def _break(self):
        if self.broken:
            raise self.broken


@pytest.fixture
def context():
    return Context()


@pytest.fixture
def service(monkeypatch):
    service = FakeService()
    names = (name for name, of in vars(Services).items() if isinstance(of, cached_property))
    services = SimpleNamespace(**dict.fromkeys(names, service))
    monkeypatch.setattr(bootstrap, "services", lambda: services)
    return service


@pytest.fixture
def queue(monkeypatch):
    queue = FakeQueue()
    monkeypatch.setattr(bootstrap, "notices_queue", lambda: queue)
    return queue


@pytest.fixture
def log(monkeypatch):
    """What is logged, line by line, once it is called."""
    stream = io.StringIO()
    monkeypatch.setattr(logger.registered_handler, "stream", stream)
    return lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


def batch(
    *bodies: str, attempts: int = 1, sent: float = 1767268800, attributes: Any = None
) -> dict[str, Any]:
    """A batch as Lambda's event source mapping makes it."""
    return {
        "Records": [
            {
                "messageId": f"message-{number}",
                "receiptHandle": f"receipt-{number}",
                "body": body,
                "attributes": {
                    "ApproximateReceiveCount": str(attempts),
                    "SentTimestamp": str(int(sent * 1000)),
                    "SenderId": "AIDAEXAMPLE",
                    "ApproximateFirstReceiveTimestamp": "1767268800001",
                },
                "messageAttributes": attributes or {},
                "md5OfBody": "",
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:queue",
                "awsRegion": "us-east-1",
            }
            for number, body in enumerate(bodies)
        ]
    }


def embedded_metrics(printed):
    """Metrics in the embedded format among what was printed: name -> value."""
    found: dict[str, Any] = {}
    for line in printed.splitlines():
        said = json.loads(line) if line.startswith("{") else {}
        for directive in said.get("_aws", {}).get("CloudWatchMetrics", []):
            assert directive["Namespace"] == "Plimsoll"
            found |= {m["Name"]: said[m["Name"]] for m in directive["Metrics"]}
    return found
