"""One thread that decides, and some that write: what the fake kubelets share.

Every change that a watch brings, every timer and every answer is handled in one thread, so that the
parts need no locks. Requests go over threads of their own, and are tried again until they are
answered: a kubelet outlives its API server.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes.transport import Response, Transport
from plimsoll.domain.errors import Temporary
from plimsoll_simulation.fake_cluster.timers import Timers
from plimsoll_testbed.rigs.controlplane.users import FAKE_KUBELETS

WRITERS: Final = 64
"""Each kubelet of a real cluster writes by itself. With eight writers for hundreds of nodes, pods of a storm that were
evicted in time waited for the confirmation that they had stopped, and new ones to be Ready."""
AGAIN: Final = timedelta(seconds=0.25)
_NOT_YET: Final = frozenset({401, 403, 429, 500, 502, 503, 504})
"""Answers that another attempt may change. The fake kubelets have every right: a refusal is of an API
server that has not read its roles yet."""
_WATCHED_SECONDS: Final = 1.0
STRATEGIC: Final = "application/strategic-merge-patch+json"
MERGE: Final = "application/merge-patch+json"
JSON: Final = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A request that must be done, unless it is no longer wanted."""

    method: str
    path: str
    body: Any = None
    content_type: str = JSON
    wanted: Callable[[], bool] = lambda: True
    """Asked before each attempt."""
    then: Callable[[Response], None] = lambda _: None
    """Called in the loop with the answer, also where that is a refusal."""


class Loop:
    """Runs what is posted and what is due, one after the other."""

    def __init__(self, api: Transport) -> None:
        self._api = api
        self._clock = SystemClock()
        self._posted: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self.timers = Timers()
        """For the loop's own thread."""
        self._writers = ThreadPoolExecutor(WRITERS, thread_name_prefix="writer")

    def now(self) -> datetime:
        """Return the time."""
        return self._clock.now()

    def post(self, act: Callable[[], None]) -> None:
        """Let something be done in the loop; any thread may ask."""
        self._posted.put(act)

    def write(self, write: Write) -> None:
        """Send a request until it is answered."""
        self._writers.submit(self._send, write)

    def end(self) -> None:
        """Let `run` return."""
        self._posted.put(None)

    def run(self) -> None:
        """Run until somebody calls `end`."""
        while True:
            while (due := self.timers.next(writes=True)) is not None and due <= self.now():
                self.timers.pop(writes=True)(self.now())
            wait = _WATCHED_SECONDS
            if due is not None:
                wait = min(wait, max(0.0, (due - self.now()).total_seconds()))
            try:
                act = self._posted.get(timeout=wait)
            except queue.Empty:
                continue
            if act is None:
                return
            act()

    def _send(self, write: Write) -> None:
        if not write.wanted():
            return None
        try:
            answer = self._api.call(
                write.method,
                write.path,
                query={"fieldManager": FAKE_KUBELETS},
                body=write.body,
                content_type=write.content_type,
            )
        except Temporary:
            answer = None
        except Exception as error:  # noqa: BLE001 - raised in the loop, which ends the process by it
            return self.post(partial(_raise, error))
        if answer is None or _not_yet(write, answer):
            self.post(lambda: self.timers.write(self.now() + AGAIN, lambda _: self.write(write)))
        else:
            self.post(lambda: write.then(answer))
        return None


def _raise(error: Exception) -> None:
    raise error


def _not_yet(write: Write, answer: Response) -> bool:
    match answer.status:
        case 409:  # over when the object is somebody else's, and then the write is not wanted
            return bool(answer.body["reason"] == "Conflict")
        case 404:  # its namespace is made while the API server starts
            return write.method == "POST"
        case status:
            return status in _NOT_YET
