"""When a drill is settled: nothing is still to come, and nothing moves."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from plimsoll_testbed.scenario.scenario import Entry


def to_come(timeline: Iterable[Entry], elapsed: timedelta) -> list[str]:
    """Return in words what of the timeline is not over yet, counted from time 0."""
    return [str(entry.place) for entry in timeline if entry.ends > elapsed or entry.at >= elapsed]


def settled(timeline: Iterable[Entry], elapsed: timedelta, restless: Iterable[str]) -> bool:
    """Whether a drill may end: the timeline is over and `Measurement.restless` says nothing."""
    return not to_come(timeline, elapsed) and not list(restless)
