"""The wire between the service's functions, its agents and the emulated AWS, which may be at fault.

Everything goes through unchanged until faults begin. Then the table and the queue refuse for a while,
answers are lost after the work was done, messages are sent twice, and workers are killed by signal in
the moment in which they write. A request is refused, repeated or unanswered as a whole: the emulator
checks signatures, so that nothing in it can be changed on its way.
"""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from random import Random
from threading import Lock
from typing import Final, override

from moto.core.request import Request
from urllib3 import PoolManager, Retry, Timeout
from urllib3.exceptions import HTTPError
from werkzeug.wrappers import Response

from plimsoll_testbed.rigs.emulated.awswire import LoopbackServer

SERVICES: Final = ("DYNAMODB", "SQS")
"""In boto3's spelling of `AWS_ENDPOINT_URL_<SERVICE>`."""
PUSHES: Final = "/snapshots"
"""What the path of a snapshot ends with."""
RUN: Final = 6
"""The most requests that are throttled, or messages refused, one after the other: as often as a client tries in two calls."""
MOST_KILLED: Final = 4
"""Each kill costs a cold start, and what was held waits for its visibility timeout."""
_TIMEOUT: Final = Timeout(connect=5, read=60)
_OF_ONE_CONNECTION: Final = {"connection", "content-length", "keep-alive", "transfer-encoding"}


class Fault(StrEnum):
    """What happened to a request, in the words of the report."""

    THROTTLED = "requests throttled by the table"
    REFUSED = "messages refused by the queue"
    ANSWER_LOST = "answers lost after the work was done"
    DOUBLED = "messages sent twice"
    KILLED = "workers killed as they wrote"


class FaultyWire(LoopbackServer):
    """Hands requests on to the emulator; use it as a context manager around it.

    Args:
        seed: draws what happens to which request, in the order in which they come.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.faults: Counter[Fault] = Counter()
        """How often each happened."""
        self._draw = Random(seed)
        self._lock = Lock()
        self._workers: Callable[[], Sequence[int]] | None = None
        self._left: Counter[Fault] = Counter()
        """How many requests a run still refuses."""
        self._kills = 0
        self._emulator = ""
        self._pool = PoolManager(maxsize=16, timeout=_TIMEOUT, retries=Retry(0, redirect=False))

    @property
    def endpoints(self) -> Mapping[str, str]:
        """Service -> URL, as `Emulator` takes them."""
        return dict.fromkeys(SERVICES, self.url)

    def connect(self, emulator: str) -> None:
        """Say where requests are handed on to: the emulator starts after the wire."""
        self._emulator = emulator

    def begin(self, workers: Callable[[], Sequence[int]]) -> None:
        """Let faults begin; `workers` returns the processes that may be killed."""
        self._workers = workers

    def heal(self) -> None:
        """Let no more faults happen."""
        with self._lock:
            self._workers = None
            self._left.clear()

    @override
    def respond(self, request: Request) -> Response:
        """Hand a request on, or do to it what is drawn."""
        fault = self._drawn(request)
        match fault:
            case None:
                return self._forwarded(request)
            case Fault.THROTTLED:
                return _error(
                    400, "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"
                )
            case Fault.REFUSED:
                return _error(503, "com.amazonaws.sqs#ServiceUnavailable")
            case Fault.ANSWER_LOST:
                self._forwarded(request)
                return _error(500, "InternalServerError")
            case Fault.DOUBLED:
                self._forwarded(request)
                return self._forwarded(request)
            case Fault.KILLED:
                return self._killed(request)

    def _drawn(self, request: Request) -> Fault | None:
        """Return what happens to a request, having counted it."""
        target = request.headers.get("X-Amz-Target", "")
        with self._lock:
            if self._workers is None:
                return None
            chosen = self._chosen(target, request.path)
            if chosen in {Fault.THROTTLED, Fault.REFUSED}:
                self._left[chosen] = self._left[chosen] or self._draw.randint(1, RUN)
                self._left[chosen] -= 1
            if chosen is Fault.KILLED:
                self._kills += 1
            elif chosen is not None:
                self.faults[chosen] += 1
            return chosen

    def _chosen(self, target: str, path: str) -> Fault | None:
        table, message = target.startswith("DynamoDB"), target == "AmazonSQS.SendMessage"
        kills = target.endswith(".PutItem") and self._kills < MOST_KILLED
        possible = (
            (Fault.THROTTLED, table, 0.015),
            (Fault.REFUSED, message, 0.15),
            (Fault.ANSWER_LOST, table or message or path.endswith(PUSHES), 0.03),
            (Fault.DOUBLED, message, 0.2),
            (Fault.KILLED, kills, 0.04),
        )
        for fault, may_be, chance in possible:
            if may_be and (self._left[fault] or self._draw.random() < chance):
                return fault
        return None

    def _killed(self, request: Request) -> Response:
        """Kill all workers before a write is done, or after it."""
        before = self._draw.random() < 1 / 2
        answer = None if before else self._forwarded(request)
        for worker in self._workers() if self._workers else ():
            with suppress(ProcessLookupError):  # it was quicker
                os.kill(worker, signal.SIGKILL)
                self.faults[Fault.KILLED] += 1
        return answer or self._forwarded(request)  # another function's write goes on

    def _forwarded(self, request: Request) -> Response:
        try:
            answer = self._pool.request(
                request.method,
                self._emulator + request.environ["RAW_URI"],
                body=request.get_data() or None,
                headers={k: v for k, v in request.headers if k.lower() not in _OF_ONE_CONNECTION},
                decode_content=False,
            )
        except HTTPError as error:
            return Response(f"the emulator does not answer: {error}", status=504)
        kept = [(k, v) for k, v in answer.headers.items() if k.lower() not in _OF_ONE_CONNECTION]
        return Response(answer.data, status=answer.status, headers=kept)


def _error(status: int, code: str) -> Response:
    """Return an error in the protocol that DynamoDB and SQS share."""
    said = {"__type": code, "message": "a fault of the trial"}
    return Response(json.dumps(said), status=status, content_type="application/x-amz-json-1.0")
