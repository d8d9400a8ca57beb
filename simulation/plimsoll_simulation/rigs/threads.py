"""The threads of one part of a rig, which end together, and whose failure ends the drill."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Final, Self, override

from plimsoll.domain.errors import Temporary

AGAIN_SECONDS: Final = 0.25
"""A kubelet tries to register every 0.2 s at first, then less and less often, up to 7 s:
k8s.io/kubernetes/pkg/kubelet/kubelet_node_status.go."""


class Threads:
    """Threads that run from `spawn` to `end`; a context manager that ends them."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        """What ended a thread early, if something did; raised where the drill is run."""
        self.ended = threading.Event()
        """Set by `end`; a thread waits on it instead of sleeping."""
        self._threads: list[threading.Thread] = []

    def spawn(self, run: Callable[[], object], name: str) -> threading.Thread:
        """Run something in a thread of its own, and return the thread."""

        def guarded() -> None:
            try:
                run()
            except Exception as error:  # noqa: BLE001 - raised where the drill is run
                self.error = error

        thread = threading.Thread(target=guarded, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def end(self) -> None:
        """Tell the threads to end, and wait until they have."""
        self.ended.set()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


class RetryQueue[T](Threads):
    """Does one kind of thing, in the order in which it was asked for; what waits is done together.

    The model steps in no time and under the lock of the drill; a real API server takes its time, and
    may be down. So what becomes of machines is queued here and carried out by a thread.

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

    def ask(self, what: T, later: Callable[[Callable[[], None]], None] = lambda put: put()) -> None:
        """Let it be done soon, or soon after `later` calls what it is given."""
        with self._lock:
            self._open += 1
        later(lambda: self._waiting.put(what))

    @property
    def open(self) -> int:
        """How many are not done yet."""
        with self._lock:
            return self._open

    @override
    def end(self) -> None:
        """Let go of what is not done."""
        self.ended.set()  # before the thread wakes up: it would wait for more, and for ever
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
