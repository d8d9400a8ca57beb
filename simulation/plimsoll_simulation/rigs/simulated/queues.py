"""A queue and the function behind it, as the template sets them up on AWS.

At least once and in no order: a message whose run fails, or dies, comes back. Sources:
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html,
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/standard-queues-at-least-once-delivery.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final

from plimsoll.services.retry_policy import RetryPolicy
from plimsoll_simulation.rigs.simulated.time import Invocation, VirtualClock

BATCH: Final = 10
"""The most notices that one invocation takes: the template's BatchSize."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Message:
    body: str
    attempts: int = 0


@dataclass(slots=True, kw_only=True)
class SimulatedQueue:
    """Messages, in batches, to their function, which runs in an invocation of its own."""

    clock: VirtualClock
    function: str
    """Its name."""
    handle: Callable[[Sequence[str], str], Sequence[object]]
    """What a batch of bodies comes to in a run of this name, in order: an exception for each that failed."""
    policy: RetryPolicy
    batch: int = 1
    notice_seconds: float
    """From the event to the start of the function."""
    function_seconds: float
    """From the start of the function to its first call."""
    in_flight: int = field(init=False, default=0)
    """Messages that are neither handled nor set aside."""
    running: int = field(init=False, default=0)
    """Invocations at work."""
    set_aside: list[tuple[str, Exception]] = field(init=False, default_factory=list)
    """The dead-letter queue, with the reasons."""
    _visible: list[_Message] = field(init=False, default_factory=list)
    _runs: int = field(init=False, default=0)

    def send(self, body: str, *, delay_seconds: float = 0.0) -> None:
        """Take a message now; it is delivered after its delay and the way to the function."""
        self.in_flight += 1
        self._show(_Message(body=body), delay_seconds + self.notice_seconds)

    def _show(self, message: _Message, after_seconds: float) -> None:
        when = self.clock.now() + timedelta(seconds=after_seconds)
        self.clock.at(when, partial(self._appear, message))

    def _appear(self, message: _Message) -> None:
        if self.batch == 1:
            self._start([message])
            return
        self._visible.append(message)
        if len(self._visible) == 1:  # all that appear at one instant are taken together
            self.clock.at(self.clock.now(), self._poll)

    def _poll(self) -> None:
        while self._visible:
            taken, self._visible = self._visible[: self.batch], self._visible[self.batch :]
            self._start(taken)

    def _start(self, batch: Sequence[_Message]) -> None:
        results: list[object] = []
        self._runs += 1
        self.running += 1
        name = f"{self.function}-{self._runs}"

        def run() -> None:
            self.clock.sleep(self.function_seconds)
            results.extend(self.handle([message.body for message in batch], name))

        def done(invocation: Invocation) -> None:
            self.running -= 1
            whole = not invocation.killed and len(results) == len(batch)
            why = invocation.error or RuntimeError("the run was killed")
            for message, result in zip(
                batch, results if whole else [None] * len(batch), strict=True
            ):
                if not whole:  # it did not say what became of them
                    last = message.attempts >= self.policy.attempts
                    self._again(message, why, None if last else self.policy.visibility_seconds)
                elif isinstance(result, Exception):
                    pause = self.policy.pause_seconds(result, attempts=message.attempts)
                    self._again(message, result, pause)
                else:
                    self.in_flight -= 1

        for message in batch:
            message.attempts += 1
        self.clock.spawn(self.clock.now(), run, self.function, done)

    def _again(self, message: _Message, why: Exception, pause_seconds: float | None) -> None:
        if pause_seconds is None:
            self.in_flight -= 1
            self.set_aside.append((message.body, why))
        else:
            self._show(message, pause_seconds)
