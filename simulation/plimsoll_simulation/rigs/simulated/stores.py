"""The in-memory stores and the queues, behind the wire: as slow as DynamoDB and SQS."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import batched
from typing import Any, Final, cast

from plimsoll.domain.registry import ResyncRequest
from plimsoll_simulation.rigs.simulated.network import SimulatedNetwork

REGISTRY: Final = {
    "get": "dynamodb:GetItem",
    "list": "dynamodb:Scan",
    "add": "dynamodb:PutItem",
    "update": "dynamodb:PutItem",
    "remove": "dynamodb:DeleteItem",
}
NODE_INDEX: Final = {"find": "dynamodb:BatchGetItem", "put": "dynamodb:BatchWriteItem"}
REPORTS: Final = {
    "merge": "dynamodb:PutItem",
    "list": "dynamodb:Query",
    "scores": "dynamodb:GetItem",
    "put_score": "dynamodb:PutItem",
}
POOLS: Final = {
    "read": "dynamodb:Query",
    "put": "dynamodb:PutItem",
    "memory": "dynamodb:Query",
    "held": "dynamodb:Query",
    "count": "dynamodb:PutItem",
    "shifts": "dynamodb:Query",
    "put_shift": "dynamodb:PutItem",
}

TIMES: Final = {"read": "dynamodb:BatchGetItem", "merge": "dynamodb:PutItem"}
LAYOUTS: Final = {"read": "dynamodb:Query", "write": "dynamodb:PutItem"}


def behind[P](wire: SimulatedNetwork, port: P, operations: Mapping[str, str]) -> P:
    """Return a port whose every call takes the time of a call to AWS, and is counted as one.

    Args:
        wire: the way to AWS.
        port: in memory; what calls it past the wire costs nothing.
        operations: its methods, and what each asks of AWS.
    """
    return cast("P", _Behind(wire, port, operations))


class _Behind:
    def __init__(self, wire: SimulatedNetwork, port: object, operations: Mapping[str, str]) -> None:
        self._wire = wire
        self._port = port
        self._operations = operations

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation, method = self._operations[name], getattr(self._port, name)
        return lambda *given: self._wire.to_aws(operation, partial(method, *given))


class SimulatedWakeUps:
    """The port `Wake-ups`: what is sent goes to whoever plays the queue."""

    def __init__(self, wire: SimulatedNetwork, queue: Callable[[str, int], None]) -> None:
        self._wire = wire
        self._queue = queue

    def send(self, cluster: str, delays: Sequence[int], traceparent: str | None = None) -> None:  # noqa: ARG002 - drills are not traced
        """Send one wake-up for each delay, in seconds."""
        _send(self._wire, partial(self._queue, cluster), delays)


class SimulatedResyncs:
    """The port `Resyncs`: what is sent goes to whoever plays the queue."""

    def __init__(self, wire: SimulatedNetwork, queue: Callable[[str], None]) -> None:
        self._wire = wire
        self._queue = queue

    def send(self, requests: Sequence[ResyncRequest]) -> None:
        """Send one message for each request."""
        _send(self._wire, self._queue, [request.message() for request in requests])


def _send[T](wire: SimulatedNetwork, queue: Callable[[T], None], messages: Sequence[T]) -> None:
    """Give messages to a queue, ten in one call."""

    def take(batch: Sequence[T]) -> None:
        for message in batch:
            queue(message)

    for batch in batched(messages, 10, strict=False):
        wire.to_aws("sqs:SendMessageBatch", partial(take, batch))
