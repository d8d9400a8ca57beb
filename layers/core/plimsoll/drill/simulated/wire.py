"""The way to the world in virtual time: every call takes its time, is counted, and can be the last.

What a call does happens at its end, at one instant. A run that is killed dies between two calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from plimsoll.drill.simulated.time import VirtualClock


class Counter(Protocol):
    """Who counts the calls, for the report."""

    def kubernetes_call(self, verb: str) -> None:
        """Count one call to a Kubernetes API."""

    def aws_call(self, operation: str) -> None:
        """Count one call to AWS."""


class Wire:
    """Gives calls their latency and has them counted.

    Args:
        clock: the time that calls take place in.
        latency_seconds: of one call.
        counter: None for whoever is no responder, such as the cluster's autoscaler.
    """

    def __init__(
        self, clock: VirtualClock, latency_seconds: float, counter: Counter | None = None
    ) -> None:
        self._clock = clock
        self._latency_seconds = latency_seconds
        self._counter = counter

    def to_kubernetes[T](self, verb: str, path: str, act: Callable[[], T]) -> T:
        """Make a call to an API server."""
        if self._counter is not None:
            self._counter.kubernetes_call(verb)
        return self._carry(f"{verb} {path}", act)

    def to_aws[T](self, operation: str, act: Callable[[], T]) -> T:
        """Make a call to AWS; `operation` as in `ec2:DescribeInstances`."""
        if self._counter is not None:
            self._counter.aws_call(operation)
        return self._carry(operation, act)

    def _carry[T](self, call: str, act: Callable[[], T]) -> T:
        self._clock.sleep(self._latency_seconds)
        try:
            answer = act()
        except Exception:
            self._clock.called(call)
            raise
        self._clock.called(call)
        return answer
