"""Who hears how a drill goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from plimsoll_testbed.measure.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a drill is."""

    seconds: float
    """From time 0."""
    of_seconds: float
    """The horizon: it ends there at the latest."""


class Listener(Protocol):
    """Who hears how a drill goes. Calls come often: return soon."""

    def progress(self, progress: Progress) -> None:
        """Time has passed."""

    def say(self, seconds: float, what: str) -> None:
        """Something happened, so many seconds after time 0 (before it: since the start)."""

    def show(self, snapshot: Callable[[], Snapshot]) -> None:
        """Take a picture now, or let it be: asking is free, and the answer costs a little.

        It can be taken during this call only, while the rig holds its world still.
        """


class Quiet:
    """Hears nothing."""

    def progress(self, progress: Progress) -> None:
        """Pass it over."""

    def say(self, seconds: float, what: str) -> None:
        """Pass it over."""

    def show(self, snapshot: Callable[[], Snapshot]) -> None:
        """Pass it over."""
