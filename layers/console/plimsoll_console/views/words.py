"""Words that several screens share."""

from __future__ import annotations

from datetime import datetime, timedelta

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def counted(number: int, one: str, many: str) -> str:
    """Return a number with what it counts, in the right form."""
    return f"{number} {one if number == 1 else many}"


def split_ref(text: str) -> tuple[str, str, str]:
    """Return kind, namespace and name of a reference as `Ref` writes it."""
    kind, _, path = text.partition(" ")
    namespace, _, name = path.partition("/")
    return kind, namespace, name


def ago(time: datetime, now: datetime) -> str:
    """Return how long ago a time is."""
    age = now - time
    if age < MINUTE:
        return f"{max(0, round(age.total_seconds()))} s ago"
    if age < HOUR:
        return f"{age // MINUTE} min ago"
    return f"{age // HOUR} h ago" if age < DAY else f"{age // DAY} d ago"
