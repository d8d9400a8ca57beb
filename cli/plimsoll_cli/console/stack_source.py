"""The clusters of a deployed stack: who is registered, the frames of their storms, and the reports after them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.frames import Frame
from plimsoll.services.ports import Clock, FrameArchive, RegisteredClusters, Reports
from plimsoll_console.sources import ClusterState, Kind, Rehearsal, with_end

IN_STORM: Final = 2.0
IN_CALM: Final = 10.0
"""Seconds between two readings."""
SHOWN: Final = timedelta(days=7)
"""How old frames may be: older storms have their reports."""
MOST_FRAMES: Final = 2000
_MOMENT: Final = timedelta(microseconds=1)


class StackSource:
    """Follows the clusters of a stack in a thread, without a word to any of them.

    Args:
        name: of the stack.
        registry: its clusters.
        frames: of their storms.
        reports: of their interruptions.
        clock: the time.
    """

    kind: Kind = "stack"
    speed = 1.0
    ended = False

    def __init__(
        self,
        name: str,
        registry: RegisteredClusters,
        frames: FrameArchive,
        reports: Reports,
        clock: Clock,
    ) -> None:
        self.title = name
        self._registry = registry
        self._frames = frames
        self._reports = reports
        self._clock = clock
        self._states: dict[str, ClusterState] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="stack", daemon=True)

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def close(self) -> None:
        """Follow no more."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(IN_STORM)

    def now(self) -> datetime:
        """Return the time."""
        return self._clock.now()

    def clusters(self) -> Sequence[str]:
        """Return the names of the registered clusters."""
        return [*self._states]

    def state(self, cluster: str) -> ClusterState | None:
        """Return what is known of a cluster."""
        return self._states.get(cluster)

    def rehearsals(self, cluster: str) -> Sequence[Rehearsal]:  # noqa: ARG002 - of the port
        """Return none: a stack does not let the console read its clusters."""
        return []

    def rehearse(self, cluster: str, scope: str) -> Rehearsal | None:  # noqa: ARG002 - of the port
        """Begin none."""
        return None

    def look(self) -> None:
        """Read all clusters once. One that cannot be read says so, and hides no other.

        Raises:
            PlimsollError: the registry cannot be read.
        """
        names = [cluster.name for cluster in self._registry.list()]
        # Replaced as a whole: a page that is drawn meanwhile sees the clusters of one reading.
        self._states = {name: self._read(name) for name in names}

    def _read(self, name: str) -> ClusterState:
        now = self._clock.now()
        state = self._states.get(name) or ClusterState(name=name, at=now)
        try:
            since = state.latest.at + _MOMENT if state.latest else now - SHOWN
            frames = (*state.frames, *self._frames.since(name, since))[-MOST_FRAMES:]
            reports = self._reports.list(name)
        except PlimsollError as error:
            return replace(state, error=str(error))
        frames = (*with_end(frames, reports, now),)
        return replace(state, at=now, frames=frames, reports=reports, error="", told=True)

    def _follow(self) -> None:
        while not self._stop.is_set():
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 - shown on every page: nobody waits for this thread
                self._states = {
                    name: replace(state, error=f"{type(error).__name__}: {error}")
                    for name, state in self._states.items()
                }
            calm = not any(map(_runs, (state.latest for state in self._states.values())))
            self._stop.wait(IN_CALM if calm else IN_STORM)


def _runs(frame: Frame | None) -> bool:
    return frame is not None and not frame.over
