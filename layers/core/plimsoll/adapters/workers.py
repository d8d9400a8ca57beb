"""Thirty-two threads, kept between calls: a Lambda process lives through many reconciles.

The calls they run wait on sockets, so that two cores are plenty. In a storm an eviction takes a quarter of a second: with sixteen
threads a control plane on two cores was asked for 45 of them a second, and with these it took 65. Each has a connection
to a cluster of its own (`plimsoll.adapters.kubernetes.client`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

THREADS: Final = 32


class ThreadWorkers:
    """Runs independent calls on threads.

    A task must not call `run` again: as many as wait for others would wait for ever.
    """

    def __init__(self, threads: int = THREADS) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="plimsoll")

    def run[T](self, tasks: Sequence[Callable[[], T]]) -> Sequence[T | Exception]:
        """Run all and return, in order, what each returned or raised."""
        # A single task runs in the caller's thread: that needs no thread of the pool.
        if len(tasks) == 1:
            return [_attempt(tasks[0])]
        return list(self._pool.map(_attempt, tasks))

    def close(self) -> None:
        """End the threads, once what they run is done."""
        self._pool.shutdown()


class SerialWorkers:
    """Runs one call after the other, in the caller's own thread."""

    def run[T](self, tasks: Sequence[Callable[[], T]]) -> Sequence[T | Exception]:
        """Run all and return, in order, what each returned or raised."""
        return [_attempt(task) for task in tasks]


def _attempt[T](task: Callable[[], T]) -> T | Exception:
    try:
        return task()
    except Exception as error:  # noqa: BLE001 - handed to the caller, who knows what it means
        return error
