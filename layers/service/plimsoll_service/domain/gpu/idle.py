"""Runs of minutes in which GPUs are held and do not work, from bits: exact, and over midnight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from plimsoll_service.domain.gpu.series import PodSeries

IDLE_MINUTES: Final = 30
"""A shorter pause is not an idle run."""
HOURS_PER_WEEK: Final = 168
_HOUR_BITS: Final = (1 << 60) - 1


def idle_minutes(pod: PodSeries) -> int:
    """Return a bit for each minute of an idle run of `IDLE_MINUTES` and more."""
    return _long_runs(pod.known & ~pod.busy, IDLE_MINUTES)


def _long_runs(bits: int, least: int) -> int:
    """Return the bits of runs of at least so many ones.

    A bit that is left after `bits` is laid over itself, moved by up to `least - 1`, begins such a run.
    Laying the rest over itself in the other direction gives the runs back.
    """
    return _grown(_grown(bits, least, shrink=True), least, shrink=False)


def _grown(bits: int, least: int, *, shrink: bool) -> int:
    done = 1
    while done < least:
        step = min(done, least - done)
        bits = bits & (bits >> step) if shrink else bits | (bits << step)
        done += step
    return bits


def by_hour_of_week(bits: int, first_weekday: int) -> Sequence[int]:
    """Return how many minutes are in each hour of the week, the first that of Monday midnight in UTC.

    Args:
        bits: A bit for each minute since midnight of the first day.
        first_weekday: Of that day; 0 is Monday.
    """
    found = [0] * HOURS_PER_WEEK
    for hour, minutes in enumerate(hours_of(bits)):
        found[(first_weekday * 24 + hour) % HOURS_PER_WEEK] += minutes.bit_count()
    return found


def hours_of(bits: int) -> Iterator[int]:
    """Yield the 60 bits of each hour, up to the last one that has any."""
    while bits:
        yield bits & _HOUR_BITS
        bits >>= 60
