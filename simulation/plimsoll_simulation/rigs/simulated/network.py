"""The way to clusters and AWS in virtual time: every call takes its time, is counted, and can be the last.

What a call does happens at its end, at one instant. A run that is killed dies between two calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from plimsoll.adapters.aws_timeouts import ATTEMPTS
from plimsoll.adapters.kubernetes.client import READ_SECONDS
from plimsoll.domain.errors import Temporary, Throttled
from plimsoll_simulation.rigs.simulated.fault_injector import FaultInjector
from plimsoll_simulation.rigs.simulated.time import VirtualClock

BACKOFF_SECONDS: Final = 0.5
"""Seconds before botocore's second attempt on average; doubled before each further one.

Source: https://boto3.amazonaws.com/v1/documentation/api/latest/guide/retries.html
"""


class Counter(Protocol):
    """Who counts the calls, for the report."""

    def kubernetes_call(self, verb: str) -> None:
        """Count one call to a Kubernetes API."""

    def aws_call(self, operation: str) -> None:
        """Count one call to AWS."""


@dataclass(frozen=True, slots=True)
class SimulatedNetwork:
    """Gives calls their latency and has them counted."""

    clock: VirtualClock
    """The time that calls take place in."""
    latency_seconds: float
    """Of one call."""
    counter: Counter | None = None
    """None for whoever is no responder, such as the cluster's autoscaler."""
    fault_injector: FaultInjector | None = None
    """What goes wrong with AWS; None for nothing."""
    on_answer: Callable[[str, Callable[[], object], object], None] | None = None
    """Told of each call, what it did, and its answer."""

    def to_kubernetes[T](
        self, verb: str, path: str, act: Callable[[], T], *, lag_seconds: float = 0.0
    ) -> T:
        """Make a call to an API server whose answers take so much longer than usual.

        Raises:
            Temporary: no answer within the real client's time; what was asked is done all the same.
        """
        if self.counter is not None:
            self.counter.kubernetes_call(verb)
        call = f"{verb} {path}"
        if self.latency_seconds + lag_seconds < READ_SECONDS:
            return self._carry(call, act, lag_seconds)

        def unheard() -> T:
            act()
            raise Temporary(f"{call}: no answer within {READ_SECONDS} s")

        return self._carry(call, unheard, READ_SECONDS - self.latency_seconds)

    def to_aws[T](self, operation: str, act: Callable[[], T]) -> T:
        """Make a call to AWS; `operation` as in `ec2:DescribeInstances`.

        Raises:
            Throttled: AWS turned away every attempt of the real client.
        """
        for attempt in range(ATTEMPTS):
            if attempt:
                self.clock.sleep(BACKOFF_SECONDS * 2 ** (attempt - 1))
            if self.counter is not None:
                self.counter.aws_call(operation)
            if self.fault_injector is None or not self.fault_injector.throttles(
                operation, self.clock.now()
            ):
                return self._carry(operation, act)
            self.clock.sleep(self.latency_seconds)
        raise Throttled(f"{operation}: Throttling: Rate exceeded")

    def _carry[T](self, call: str, act: Callable[[], T], lag_seconds: float = 0.0) -> T:
        self.clock.sleep(self.latency_seconds + lag_seconds)
        try:
            answer = act()
        except Exception:
            self.clock.called(call)
            raise
        if self.on_answer is not None:
            self.on_answer(call, act, answer)
        self.clock.called(call)
        return answer
