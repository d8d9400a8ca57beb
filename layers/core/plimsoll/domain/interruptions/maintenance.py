"""The owner's maintenance window: when nodes are drained for changes that AWS announced far ahead."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Self, override

from plimsoll.domain.errors import BadInput

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TIME: Final = "([01][0-9]|2[0-3]):([0-5][0-9])"
_WRITTEN: Final = re.compile(rf"([a-z,]{{3,27}}) {_TIME}-{_TIME}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceWindow:
    """Hours of some days of the week, in UTC."""

    days: tuple[int, ...]
    """On which it opens; 0 is Monday."""
    opens: int
    """Minutes after midnight."""
    minutes: int
    """How long it is open, at most a day."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a window such as `sat,sun 22:00-04:00`.

        Raises:
            BadInput: It is not written so.
        """
        found = _WRITTEN.fullmatch(text)
        if found is None or not set(found[1].split(",")) <= set(DAYS):
            raise BadInput(f"{text!r} is no window: write days and hours as in sat,sun 22:00-04:00")
        opens, closes = (int(found[n]) * 60 + int(found[n + 1]) for n in (2, 4))
        days = sorted({DAYS.index(day) for day in found[1].split(",")})
        return cls(days=tuple(days), opens=opens, minutes=(closes - opens - 1) % (24 * 60) + 1)

    def next_start(self, since: datetime) -> datetime:
        """Return when it opens next, or when it did if it is open."""
        midnight = since.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        starts = (
            midnight + timedelta(days=day, minutes=self.opens)
            for day in range(-1, 8)
            if (midnight + timedelta(days=day)).weekday() in self.days
        )
        return next(at for at in starts if since < at + timedelta(minutes=self.minutes))

    def is_open(self, now: datetime) -> bool:
        """Whether it is open."""
        return self.next_start(now) <= now

    @override
    def __str__(self) -> str:
        hours = (divmod(m % (24 * 60), 60) for m in (self.opens, self.opens + self.minutes))
        begins, ends = (f"{hour:02}:{minute:02}" for hour, minute in hours)
        return f"{','.join(DAYS[day] for day in self.days)} {begins}-{ends}"
