"""What a drill does in a cluster outside its own time, one thing after the other, until it is done.

A fleet steps in no time and under the lock of the drill; a real API server takes its time, and may
be down. So what becomes of machines is queued here and carried out by a thread.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Final, override

from plimsoll.domain.errors import Temporary
from plimsoll_testbed.rigs.threads import Threads

AGAIN_SECONDS: Final = 0.25
"""A kubelet tries to register every 0.2 s at first, then less and less often, up to 7 s:
k8s.io/kubernetes/pkg/kubelet/kubelet_node_status.go."""


class RetryQueue[T](Threads):
    """Does one kind of thing, in the order in which it was asked for; what waits is done together.

    Args:
        name: of the thread.
        act: does it for everything that waits. `Temporary` means: again, until it is done.
    """

    def __init__(self, name: str, act: Callable[[list[T]], None]) -> None:
        super().__init__()
        self._name = name
        self._act = act
        self._waiting: queue.SimpleQueue[T | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._open = 0

    def start(self) -> None:
        """Begin to do what is asked for."""
        self.spawn(self._run, self._name)

    def ask(self, what: T) -> None:
        """Let it be done soon."""
        with self._lock:
            self._open += 1
        self._waiting.put(what)

    @property
    def open(self) -> int:
        """How many are not done yet."""
        with self._lock:
            return self._open

    @override
    def end(self) -> None:
        """Let go of what is not done."""
        self._waiting.put(None)
        super().end()

    def _run(self) -> None:
        while not self.ended.is_set():
            asked = [self._waiting.get()]
            while not self._waiting.empty():
                asked.append(self._waiting.get())
            self._do([what for what in asked if what is not None])
            with self._lock:
                self._open -= len(asked)

    def _do(self, asked: list[T]) -> None:
        while asked and not self.ended.is_set():
            try:
                self._act(asked)
            except Temporary:
                self.ended.wait(AGAIN_SECONDS)
            else:
                return
