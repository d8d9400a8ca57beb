"""The responder `drain` on the emulated rig: what common handlers do, fed by the emulator's bus.

It is no function of the stack but a program beside it, as such handlers are: a queue and a rule of
its own, a thread that polls, and the official client over HTTP.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, Final, Self, override

from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.services.ports import Clock
from plimsoll_testbed.model.machines import Machine
from plimsoll_testbed.rigs import commondrain
from plimsoll_testbed.rigs.access import Access
from plimsoll_testbed.rigs.emulated.emulator import ACCOUNT, REGION, Emulator
from plimsoll_testbed.rigs.rig_cluster import RigCluster

NAME: Final = "common-drain"
"""Of its queue and its rule."""
POLL_SECONDS: Final = 1
"""A long poll answers as soon as there is something; it also bounds how long stopping takes."""
CONNECTIONS: Final = 512
"""Kept open: every pod is evicted in a thread of its own, and urllib3 warns of more."""


class CommonDrain(AbstractContextManager["CommonDrain"]):
    """Hears notices and drains; use it as a context manager.

    Args:
        emulator: whose bus it hears.
        stages: the clusters, to know which node an instance is.
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
        self._emulator = emulator
        self._rig_clusters = rig_clusters
        self._patience = _Patience(clock)
        self._drains = {
            name: commondrain.CommonDrain(
                way.transport(CONNECTIONS), name, self._patience, workers=_ThreadForEach()
            )
            for name, way in ways.items()
        }
        self._draining: dict[str, threading.Thread] = {}
        self._poller = threading.Thread(target=self._guarded(self._poll), name="common drain")
        self._sqs = emulator.client("sqs")
        self._queue = ""
        self.error: Exception | None = None
        """What ended a thread, if something did."""

    @override
    def __enter__(self) -> Self:
        """Put a queue on the bus and start to poll it."""
        self._queue = self._sqs.create_queue(QueueName=NAME)["QueueUrl"]
        arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{NAME}"
        self._sqs.set_queue_attributes(QueueUrl=self._queue, Attributes={"Policy": _policy(arn)})
        events = self._emulator.client("events")
        events.put_rule(Name=NAME, EventPattern=json.dumps({"source": ["plimsoll.drill"]}))
        events.put_targets(Rule=NAME, Targets=[{"Id": NAME, "Arn": arn}])
        self._poller.start()
        return self

    @override
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._patience.end()
        for thread in (self._poller, *self._draining.values()):
            if thread.is_alive():
                thread.join()

    def _poll(self) -> None:
        while not self._patience.over:
            answer = self._sqs.receive_message(
                QueueUrl=self._queue, MaxNumberOfMessages=10, WaitTimeSeconds=POLL_SECONDS
            )
            for message in answer.get("Messages", []):
                for instance in commondrain.noticed(message["Body"], self._patience.now()):
                    self._start(instance)
                self._sqs.delete_message(
                    QueueUrl=self._queue, ReceiptHandle=message["ReceiptHandle"]
                )

    def _start(self, instance: str) -> None:
        for name, rig_cluster in self._rig_clusters.items():
            machine = rig_cluster.fleet.machine.get(instance)
            if machine is not None and instance not in self._draining:
                self._draining[instance] = thread = threading.Thread(
                    target=self._guarded(partial(self._drain, name, machine)),
                    name=f"drain {machine.node}",
                )
                thread.start()

    def _drain(self, cluster: str, machine: Machine) -> None:
        self._drains[cluster].drain(
            machine.node, over=lambda: self._patience.over or machine.gone is not None
        )

    def _guarded(self, run: Callable[[], None]) -> Callable[[], None]:
        def guarded() -> None:
            try:
                run()
            except Exception as error:  # noqa: BLE001 - raised where the drill is run
                self.error = error

        return guarded


class _Patience:
    """The port `Clock`, whose waiting can be ended."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._over = threading.Event()

    @property
    def over(self) -> bool:
        return self._over.is_set()

    def end(self) -> None:
        self._over.set()

    def now(self) -> datetime:
        return self._clock.now()

    def sleep(self, seconds: float) -> None:
        self._over.wait(seconds)


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
