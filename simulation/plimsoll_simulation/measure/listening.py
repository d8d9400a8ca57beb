"""What a rig tells while a drill runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

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
