"""The time that an analysis has: what it does not reach in time stands as it was advised before."""

from __future__ import annotations

from collections.abc import Callable

type OutOfTime = Callable[[], bool]
"""Says whether the time is over."""


class TimeIsOver(Exception):  # noqa: N818 - named for what happened
    """A part of an analysis was given up."""


def never() -> bool:
    """Return False: the analysis takes as long as it takes."""
    return False
