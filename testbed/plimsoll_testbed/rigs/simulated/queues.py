"""The two queues and the functions behind them, as the template sets them up on AWS.

At least once and in no order: a message whose run fails, or dies, comes back. Sources:
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html,
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/standard-queues-at-least-once-delivery.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from plimsoll.services.delivery import NOTICES, WAKE_UPS
from plimsoll_testbed.rigs.simulated.time import Invocation, VirtualClock

BATCH: Final = 10
"""The most notices that one invocation takes: the template's BatchSize."""

type Receive = Callable[[Sequence[str]], Sequence[object]]
"""What a batch of bodies comes to, in order: an exception for each that failed."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Message:
    body: str
    attempts: int = 0


class NoticesQueue:
    """Notices, in batches, to their function.

    Args:
        clock: the time.
        receive: the function; it runs in an invocation of its own.
        notice_seconds: from the event to the start of the function.
        function_seconds: from the start of the function to its first call.
    """

    def __init__(
        self,
        clock: VirtualClock,
        receive: Receive,
        *,
        notice_seconds: float,
        function_seconds: float,
    ) -> None:
        self._clock = clock
        self._receive = receive
        self._notice_seconds = notice_seconds
        self._function_seconds = function_seconds
        self._visible: list[_Message] = []
        self._polling = False
        self.in_flight = 0
        """Messages that are neither handled nor set aside."""
        self.set_aside: list[tuple[str, Exception]] = []
        """The dead-letter queue, with the reasons."""

    def send(self, body: str, *, delay_seconds: float = 0.0) -> None:
        """Take an event now; it is delivered after the way from the bus to the function."""
        self.in_flight += 1
        self._show(_Message(body=body), delay_seconds + self._notice_seconds)

    def _show(self, message: _Message, after_seconds: float) -> None:
        when = self._clock.now() + timedelta(seconds=after_seconds)
        self._clock.at(when, lambda: self._appear(message))

    def _appear(self, message: _Message) -> None:
        self._visible.append(message)
        if not self._polling:  # all that appear at one instant are taken together
            self._polling = True
            self._clock.at(self._clock.now(), self._poll)

    def _poll(self) -> None:
        self._polling = False
        while self._visible:
            batch, self._visible = self._visible[:BATCH], self._visible[BATCH:]
            self._start(batch)

    def _start(self, batch: Sequence[_Message]) -> None:
        results: list[object] = []

        def run() -> None:
            self._clock.sleep(self._function_seconds)
            results.extend(self._receive([message.body for message in batch]))

        def done(invocation: Invocation) -> None:
            if invocation.killed or len(results) != len(batch):  # or failed as a whole
                why = invocation.error or RuntimeError("the run was killed")
                for message in batch:
                    self._died(message, why)
                return
            for message, result in zip(batch, results, strict=True):
                if isinstance(result, Exception):
                    self._failed(message, result)
                else:
                    self.in_flight -= 1

        for message in batch:
            message.attempts += 1
        self._clock.spawn(self._clock.now(), run, "notices", done)

    def _died(self, message: _Message, why: Exception) -> None:
        """Show a message again after its visibility timeout: its run did not say what became of it."""
        if message.attempts >= NOTICES.attempts:
            self._set_aside(message, why)
        else:
            self._show(message, NOTICES.visibility_seconds)

    def _failed(self, message: _Message, why: Exception) -> None:
        pause = NOTICES.pause_seconds(why, attempts=message.attempts)
        if pause is None:
            self._set_aside(message, why)
        else:
            self._show(message, pause)

    def _set_aside(self, message: _Message, why: Exception) -> None:
        self.in_flight -= 1
        self.set_aside.append((message.body, why))


class WakeUpsQueue:
    """Wake-ups, one by one, to the reconciles of their clusters."""

    def __init__(
        self,
        clock: VirtualClock,
        work: Callable[[str, str], object],
        *,
        notice_seconds: float,
        function_seconds: float,
    ) -> None:
        self._clock = clock
        self._work = work
        self._notice_seconds = notice_seconds
        self._function_seconds = function_seconds
        self._runs = 0
        self.running = 0
        """Reconciles at work."""
        self.failed: list[Exception] = []
        """What reconciles failed with, the temporary too."""

    def send(self, cluster: str, delay_seconds: float) -> None:
        """Take a wake-up now; it is delivered after its delay."""
        self._show(cluster, delay_seconds + self._notice_seconds, 1)

    def _show(self, cluster: str, after_seconds: float, attempt: int) -> None:
        when = self._clock.now() + timedelta(seconds=after_seconds)
        self._clock.at(when, lambda: self._start(cluster, attempt))

    def _start(self, cluster: str, attempt: int) -> None:
        self._runs += 1
        self.running += 1
        holder = f"drains-{self._runs}"

        def run() -> None:
            self._clock.sleep(self._function_seconds)
            self._work(cluster, holder)

        def done(invocation: Invocation) -> None:
            self.running -= 1
            if invocation.error is not None:
                self.failed.append(invocation.error)
            elif not invocation.killed:
                return
            why = invocation.error or RuntimeError("the run was killed")
            pause = WAKE_UPS.pause_seconds(why, attempts=attempt)
            if pause is not None:
                self._show(cluster, pause, attempt + 1)

        self._clock.spawn(self._clock.now(), run, "drains", done)
