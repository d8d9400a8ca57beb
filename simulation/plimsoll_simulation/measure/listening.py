"""What a rig tells while a drill runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from plimsoll_simulation.measure.history import History
from plimsoll_simulation.measure.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a drill is."""

    seconds: float
    """From time 0."""
    of_seconds: float
    """The horizon: it ends there at the latest."""


class Listener(Protocol):
    """Is told how a drill proceeds. Calls come often: return soon."""

    def progress(self, progress: Progress) -> None:
        """Time has passed."""

    def say(self, seconds: float, what: str) -> None:
        """Something happened, so many seconds after time 0 (before it: since the start)."""

    def show(self, snapshot: Callable[[], Snapshot]) -> None:
        """Take a snapshot now, or ignore the offer; each snapshot costs a little time.

        It can be taken during this call only, while the rig keeps its clusters from changing.
        """


class Quiet:
    """Ignores everything."""

    def progress(self, progress: Progress) -> None:
        """Ignore it."""

    def say(self, seconds: float, what: str) -> None:
        """Ignore it."""

    def show(self, snapshot: Callable[[], Snapshot]) -> None:
        """Ignore it."""


class RecordingListener:
    """A listener that keeps what it hears, and passes everything on."""

    def __init__(self, listener: Listener, history: History) -> None:
        self._listener = listener
        self._history = history

    def progress(self, progress: Progress) -> None:
        """Pass it on."""
        self._listener.progress(progress)

    def say(self, seconds: float, what: str) -> None:
        """Keep it and pass it on."""
        self._history.said(seconds, what)
        self._listener.say(seconds, what)

    def show(self, snapshot: Callable[[], Snapshot]) -> None:
        """Pass it on."""
        self._listener.show(snapshot)
