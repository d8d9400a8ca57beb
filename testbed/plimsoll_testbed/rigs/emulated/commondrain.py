"""The responder `drain` on the emulated rig: what common handlers do, fed by the emulator's bus.

It is no function of the stack but a program beside it, as such handlers are: a queue and a rule of
its own, a thread that polls, and the official client over HTTP.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Self, override

from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.services.ports import Clock
from plimsoll_testbed.rigs import commondrain
from plimsoll_testbed.rigs.access import Access
from plimsoll_testbed.rigs.emulated.emulator import ACCOUNT, REGION, Emulator
from plimsoll_testbed.rigs.rig_cluster import RigCluster
from plimsoll_testbed.rigs.threads import Threads

NAME: Final = "common-drain"
"""Of its queue and its rule."""
POLL_SECONDS: Final = 1
"""A long poll answers as soon as there is something; it also bounds how long stopping takes."""
CONNECTIONS: Final = 512
"""Kept open: every pod is evicted in a thread of its own, and urllib3 warns of more."""


class CommonDrain(Threads):
    """Polls for notices and drains; use it as a context manager.

    Args:
        emulator: on whose bus the notices are.
        rig_clusters: to know which node an instance is.
        ways: into each cluster.
        clock: the real time.
    """

    def __init__(
        self,
        emulator: Emulator,
        rig_clusters: Mapping[str, RigCluster],
        ways: Mapping[str, Access],
        clock: Clock,
    ) -> None:
        super().__init__()
        self._emulator = emulator
        self._drain = commondrain.CommonDrain(
            rig_clusters=rig_clusters,
            transports={name: way.transport(CONNECTIONS) for name, way in ways.items()},
            clock=_Interruptible(clock, self.ended),
            workers=_ThreadForEach(),
            spawn=self.spawn,
            ended=self.ended.is_set,
        )
        self._sqs = emulator.client("sqs")
        self._queue = ""

    @override
    def __enter__(self) -> Self:
        """Put a queue on the bus and start to poll it."""
        self._queue = self._sqs.create_queue(QueueName=NAME)["QueueUrl"]
        arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{NAME}"
        self._sqs.set_queue_attributes(QueueUrl=self._queue, Attributes={"Policy": _policy(arn)})
        events = self._emulator.client("events")
        events.put_rule(Name=NAME, EventPattern=json.dumps({"source": ["plimsoll.drill"]}))
        events.put_targets(Rule=NAME, Targets=[{"Id": NAME, "Arn": arn}])
        self.spawn(self._poll, "common drain")
        return self

    def _poll(self) -> None:
        while not self.ended.is_set():
            answer = self._sqs.receive_message(
                QueueUrl=self._queue, MaxNumberOfMessages=10, WaitTimeSeconds=POLL_SECONDS
            )
            for message in answer.get("Messages", []):
                self._drain.notice(message["Body"])
                self._sqs.delete_message(
                    QueueUrl=self._queue, ReceiptHandle=message["ReceiptHandle"]
                )


class _Interruptible:
    """The port `Clock`, whose waiting an event ends."""

    def __init__(self, clock: Clock, ended: threading.Event) -> None:
        self.now = clock.now
        self._ended = ended

    def sleep(self, seconds: float) -> None:
        self._ended.wait(seconds)


class _ThreadForEach:
    """The port `Workers`, with as many threads as there are calls."""

    def run[T](self, tasks: Sequence[Callable[[], T]]) -> Sequence[T | Exception]:
        if not tasks:
            return []
        workers = ThreadWorkers(len(tasks))
        try:
            return workers.run(tasks)
        finally:
            workers.close()


def _policy(arn: str) -> str:
    allowed: dict[str, Any] = {
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": arn,
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
