"""What a drill has done in a cluster outside its own time: one thing after the other, until it is done.

A fleet steps in no time and under the lock of the drill's world; a real API server takes its time, and
may be away. So what becomes of machines is put down here and carried out by a thread.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Final

from plimsoll.domain.errors import Temporary

AGAIN_SECONDS: Final = 0.25
"""A kubelet tries to register every 0.2 s at first, then less and less often, up to 7 s:
k8s.io/kubernetes/pkg/kubelet/kubelet_node_status.go."""


class RetryQueue[T]:
    """Does one kind of thing, in the order in which it was asked for; what waits is done together.

    Args:
        name: of the thread.
        act: does it for everything that waits. `Temporary` means: again, until it is done.
    """

    def __init__(self, name: str, act: Callable[[list[T]], None]) -> None:
        self._act = act
        self._waiting: queue.SimpleQueue[T | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._open = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.error: Exception | None = None

    def start(self) -> None:
        """Begin to do what is asked for."""
        self._thread.start()

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

    def end(self) -> None:
        """Let go of what is not done."""
        self._ended.set()
        self._waiting.put(None)
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                asked = [self._waiting.get()]
                while not self._waiting.empty():
                    asked.append(self._waiting.get())
                self._do([what for what in asked if what is not None])
                with self._lock:
                    self._open -= len(asked)
        except Exception as error:  # noqa: BLE001 - raised where the drill is run
            self.error = error

    def _do(self, asked: list[T]) -> None:
        while asked and not self._ended.is_set():
            try:
                self._act(asked)
            except Temporary:
                self._ended.wait(AGAIN_SECONDS)
            else:
                return
