"""The log of a drill: an action and the reason that is learned later are one line."""

from __future__ import annotations

from bisect import insort
from operator import attrgetter
from typing import NamedTuple


class Line(NamedTuple):
    """What was said at a moment."""

    seconds: float
    what: str


class Log:
    """Lines in the order of time.

    The change of an object shows an action at once; its reason comes with the log of the function,
    when the function ends. The line keeps the time of the change.
    """

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._unexplained: dict[str, Line] = {}

    def take(self, line: Line) -> None:
        """Add a line, or give an earlier one its reason."""
        action, _, reason = line.what.partition(": ")
        told = self._unexplained.pop(action, None) if reason else None
        if told is not None:
            self.lines[self.lines.index(told)] = Line(told.seconds, line.what)
            return
        if not reason:
            self._unexplained[action] = line
        insort(self.lines, line, key=attrgetter("seconds"))
