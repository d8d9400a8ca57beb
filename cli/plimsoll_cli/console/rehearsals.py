"""Rehearsals that the page asks for: one at a time, each in a process of its own, and none is recorded.

A rehearsal computes for seconds to minutes. In this process it would keep the storm from being shown.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from multiprocessing import get_context
from typing import TYPE_CHECKING, Final, cast

from plimsoll.domain.errors import PlimsollError
from plimsoll_console.sources import Rehearsal

if TYPE_CHECKING:
    from plimsoll_simulation.rehearsal.live import LiveCluster

MOST_KEPT: Final = 20
_ENDS_WITHIN: Final = 5.0
"""Seconds that a process has to end."""


class Rehearsals:
    """The rehearsals of a source.

    Args:
        read: reads a cluster; it may take seconds.
    """

    def __init__(self, read: Callable[[str], LiveCluster]) -> None:
        self._read = read
        self._done: list[Rehearsal] = []
        self._running: Rehearsal | None = None
        self._began = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def list(self, cluster: str) -> Sequence[Rehearsal]:
        """Return those of a cluster, the newest first."""
        running = self._running
        every = [*([running] if running else []), *reversed(self._done)]
        return [each for each in every if each.cluster == cluster]

    def start(self, cluster: str, scope: str, at: datetime) -> Rehearsal | None:
        """Begin one, and return it; None: another one runs."""
        with self._lock:
            if self._running is not None:
                return None
            self._began += 1
            begun = Rehearsal(number=self._began, cluster=cluster, scope=scope, at=at)
            self._running = begun
        self._thread = threading.Thread(target=self._run, args=(begun,), name="rehearsal")
        self._thread.start()
        return begun

    def close(self) -> None:
        """End the one that runs."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, begun: Rehearsal) -> None:
        try:
            found = self._played(begun)
        except PlimsollError as error:
            found = replace(begun, stage="failed", error=str(error))
        except Exception as error:  # noqa: BLE001 - shown on the page: nobody waits for this thread
            found = replace(begun, stage="failed", error=f"{type(error).__name__}: {error}")
        self._done = [*self._done, found][-MOST_KEPT:]
        self._running = None

    def _played(self, begun: Rehearsal) -> Rehearsal:
        live = self._read(begun.cluster)
        begun = replace(begun, at=live.at)
        # Loads all that a rehearsal needs: not before somebody wants one, so that the first page comes early.
        from plimsoll_cli.console.rehearsal_worker import rehearse  # noqa: PLC0415 - see above

        context = get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(
            target=rehearse, args=(theirs, live, begun), name="rehearsal", daemon=True
        )
        process.start()
        theirs.close()
        try:
            while not self._stop.is_set():
                if not ours.poll(0.2):
                    continue
                said = ours.recv()
                if isinstance(said, float):
                    self._running = begun = replace(begun, stage="playing", progress=said)
                elif isinstance(said, str):
                    return replace(begun, stage="failed", error=said)
                else:
                    return cast("Rehearsal", said)
            return replace(begun, stage="failed", error="the console was closed")
        except EOFError:
            return replace(begun, stage="failed", error="its process ended")
        finally:
            process.terminate()
            process.join(_ENDS_WITHIN)
            ours.close()
