"""The threads of one part of a rig, which end together, and whose failure ends the drill."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Self


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
