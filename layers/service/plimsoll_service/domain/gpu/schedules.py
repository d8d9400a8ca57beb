"""When an owner's GPUs could be off: hours that were idle again and again, and what keeps them so.

An hour is idle where pods held GPUs in it and no kernel ran in any of its minutes; working where one ran;
absent where no pod held a GPU. Only whole days before today count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import Enum
from itertools import groupby
from typing import Final

from plimsoll_service.domain.gpu.idle import HOURS_PER_WEEK
from plimsoll_service.domain.gpu.series import ClassSeries

NIGHTS: Final = 7
"""So many of the last nights are looked at."""
LEAST_NIGHTS: Final = 5
"""Of them have to be idle at the same hours."""
LEAST_HOURS: Final = 4
"""A shorter night is not worth a start."""
LEAST_WEEKENDS: Final = 2
"""Each whole weekend has to be idle, and there have to be so many."""
LEAST_WORK: Final = 0.5
"""Share of the other hours that have to be worked in: a GPU that is rarely used is idle at any hour."""
_DAY: Final = 24
_SATURDAY: Final = 5
_HOUR_BITS: Final = (1 << 60) - 1


class Hour(Enum):
    """What an owner's GPUs did."""

    IDLE = "idle"
    WORKING = "working"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Hours of the week at which an owner may be scaled to zero."""

    off: Sequence[bool]
    """By the hour of the week, the first that of Monday midnight in UTC."""
    night: tuple[int, int] | None
    """The first hour of the night and the one after its last, in UTC."""
    weekend: bool
    replicas: int
    """Pods that ran at once."""
    reason: str

    def on(self) -> Sequence[tuple[int, int]]:
        """Return the runs of hours of the week in between, each with its first hour and the one after its last.

        A run that goes over Sunday midnight ends in the next week, after hour 168.
        """
        start = next(
            hour for hour in range(HOURS_PER_WEEK) if self.off[hour - 1] and not self.off[hour]
        )
        turned = [
            (hour, self.off[hour % HOURS_PER_WEEK]) for hour in range(start, start + HOURS_PER_WEEK)
        ]
        runs = (
            ([hour for hour, _ in run], off) for off, run in groupby(turned, key=lambda e: e[1])
        )
        return [(run[0], run[-1] + 1) for run, off in runs if not off]


def schedule_of(classes: Sequence[ClassSeries], first: date, until: date) -> Schedule | None:
    """Return the hours that were idle again and again; None: there are none, or there is no other hour.

    Args:
        classes: All of one owner.
        first: The day from whose midnight minutes are counted.
        until: The first day that does not count: it is not whole.
    """
    hours = [*_hours(classes, (until - first).days)]
    night = _night(hours, first)
    weekends = _idle_weekends(hours, first)
    off = [False] * HOURS_PER_WEEK
    reasons = []
    if night is not None:
        (begin, end), nights = night
        for evening in nights:
            for hour in _of_night(begin, end):
                off[(evening.weekday() * _DAY + hour) % HOURS_PER_WEEK] = True
        reasons.append(
            f"idle from {begin:02}:00 to {end:02}:00 UTC on {len(nights)} of the last {NIGHTS} nights"
        )
    if weekends:
        off[_SATURDAY * _DAY :] = [True] * (2 * _DAY)
        reasons.append(f"idle on each of {weekends} weekends")
    if not any(off) or _works(hours, off, first) < LEAST_WORK:
        return None
    return Schedule(
        off=off,
        night=night[0] if night is not None else None,
        weekend=bool(weekends),
        replicas=max(each.at_once() for each in classes),
        reason="; ".join(reasons),
    )


def _hours(classes: Sequence[ClassSeries], days: int) -> Iterator[Hour]:
    """Yield what each hour of so many days was."""
    seen = known = busy = 0
    for of in classes:
        for pod in of.pods:
            seen, known, busy = seen | pod.seen, known | pod.known, busy | pod.busy
    for at in range(0, days * _DAY * 60, 60):
        if busy >> at & _HOUR_BITS or (seen & ~known) >> at & _HOUR_BITS:
            yield Hour.WORKING
        else:
            yield Hour.IDLE if known >> at & _HOUR_BITS else Hour.ABSENT


def _night(hours: Sequence[Hour], first: date) -> tuple[tuple[int, int], Collection[date]] | None:
    """Return the longest run of hours that were idle on enough of the last nights, and these nights."""
    best: tuple[tuple[int, int], Collection[date]] | None = None
    for length in range(_DAY - 1, LEAST_HOURS - 1, -1):
        for begin in range(_DAY):
            nights = _idle_nights(hours, first, begin, length)
            if len(nights) >= LEAST_NIGHTS and (best is None or len(nights) > len(best[1])):
                best = (begin, (begin + length) % _DAY), nights
        if best is not None:
            return best
    return None


def _idle_nights(hours: Sequence[Hour], first: date, begin: int, length: int) -> Collection[date]:
    """Return the evenings of the last nights that were idle for so many hours from `begin` on."""
    last = (len(hours) - begin - length) // _DAY
    return [
        first + timedelta(days=day)
        for day in range(max(0, last - NIGHTS + 1), last + 1)
        if _idle(hours[day * _DAY + begin : day * _DAY + begin + length])
    ]


def _works(hours: Sequence[Hour], off: Sequence[bool], first: date) -> float:
    """Return the share of the hours of the last days that worked, of those that are not off."""
    begin = first.weekday() * _DAY
    last = range(max(0, len(hours) - NIGHTS * _DAY), len(hours))
    on = [hours[at] is Hour.WORKING for at in last if not off[(begin + at) % HOURS_PER_WEEK]]
    return sum(on) / len(on) if on else 0.0


def _idle(hours: Sequence[Hour]) -> bool:
    """Return whether GPUs were held and none worked."""
    return Hour.WORKING not in hours and Hour.IDLE in hours


def _of_night(begin: int, end: int) -> range:
    """Return the hours of a night from midnight of its evening on."""
    return range(begin, end if end > begin else end + _DAY)


def _idle_weekends(hours: Sequence[Hour], first: date) -> int:
    """Return how many whole weekends there are, where all are idle and they are enough; else 0."""
    saturday = (_SATURDAY - first.weekday()) % 7
    starts = range(saturday * _DAY, len(hours) - 2 * _DAY + 1, HOURS_PER_WEEK)
    idle = all(_idle(hours[at : at + 2 * _DAY]) for at in starts)
    return len(starts) if idle and len(starts) >= LEAST_WEEKENDS else 0
