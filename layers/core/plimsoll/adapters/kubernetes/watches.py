"""Keeps collections of one cluster up to date by watches, each begun where the one before it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from plimsoll.adapters.kubernetes.collection import WATCH_SECONDS, Collection
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.domain.errors import Permanent
from plimsoll.services.ports import Clock, Workers

SETTLE_SECONDS: Final = 0.5
"""How long watches that were just begun may take to tell what happened before."""


def list_unwatched(
    kinds: Iterable[Collection[Any]], workers: Workers, read: Callable[[Collection[Any]], object]
) -> None:
    """Read side by side what no watch keeps up to date.

    Raises:
        Exception: the first error, once all are read.
    """
    for answer in workers.run([partial(read, kind) for kind in kinds if not kind.watched]):
        if isinstance(answer, Exception):
            raise answer


class Watches:
    """Follows what was listed.

    Args:
        requests: Makes the calls.
        workers: Makes them side by side.
        clock: The time.
        warn: Told of what is left out, and once of what cannot be watched.
        seconds: How long each watch is asked to last.
    """

    def __init__(
        self,
        requests: Requests,
        workers: Workers,
        clock: Clock,
        warn: Callable[[str], None],
        *,
        seconds: int = WATCH_SECONDS,
    ) -> None:
        self._requests = requests
        self._workers = workers
        self._clock = clock
        self._warn = warn
        self._seconds = seconds
        self._told = False

    def follow(self, kinds: Sequence[Collection[Any]], *, settled: bool = False) -> None:
        """Take in what watches told, and resume those that are over.

        A kind that may not be watched is marked, and is left to be listed.

        Args:
            kinds: What was listed before.
            settled: Give watches that were open all along the same time as those just begun.

        Raises:
            PlimsollError: see `plimsoll.adapters.kubernetes.errors`.
        """
        self._take(kinds)
        resumed = [kind for kind in kinds if kind.resumable]
        now = self._clock.now()
        answers = self._workers.run(
            [partial(kind.watch, self._requests, now, seconds=self._seconds) for kind in resumed]
        )
        for kind, answer in zip(resumed, answers, strict=True):
            if isinstance(answer, Permanent):
                kind.watchable = False
                self._tell(f"{answer}. Until it can be watched it is listed at each observation")
            elif isinstance(answer, Exception):
                raise answer
        if any(kind.watched for kind in (kinds if settled else resumed)):
            self._clock.sleep(SETTLE_SECONDS)
            self._take(kinds)

    def _take(self, kinds: Sequence[Collection[Any]]) -> None:
        for kind in kinds:
            kind.take(self._clock.now(), self._warn)

    def _tell(self, what: str) -> None:
        """Warn once: what one kind lacks, most often all do."""
        if not self._told:
            self._warn(what)
        self._told = True
