"""The way to the world in virtual time: every call takes its time, is counted, and can be the last.

What a call does happens at its end, at one instant. A run that is killed dies between two calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from plimsoll.drill.simulated.time import VirtualClock


class Wire:
    """Gives calls their latency and counts them."""

    def __init__(self, clock: VirtualClock, latency_seconds: float) -> None:
        self._clock = clock
        self._latency_seconds = latency_seconds
        self.kubernetes: Counter[str] = Counter()
        """By HTTP verb."""
        self.aws: Counter[str] = Counter()
        """By `service:Operation`."""

    def to_kubernetes[T](self, verb: str, act: Callable[[], T]) -> T:
        """Make a call to an API server."""
        self.kubernetes[verb] += 1
        return self._carry(act)

    def to_aws[T](self, operation: str, act: Callable[[], T]) -> T:
        """Make a call to AWS; `operation` as in `ec2:DescribeInstances`."""
        self.aws[operation] += 1
        return self._carry(act)

    def forget(self) -> None:
        """Count from here."""
        self.kubernetes.clear()
        self.aws.clear()

    def _carry[T](self, act: Callable[[], T]) -> T:
        self._clock.sleep(self._latency_seconds)
        try:
            answer = act()
        except Exception:
            self._clock.called()
            raise
        self._clock.called()
        return answer
