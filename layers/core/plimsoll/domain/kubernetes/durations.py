"""Durations as Go and kubectl write them: `90s`, `2m`, `1h30m`, `250ms`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from plimsoll.domain.errors import BadInput

DURATION_FORM: Final = (
    r"(?=[0-9])(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,6}(?:\.[0-9]{1,3})?)s)?"
    r"(?:([0-9]{1,9})ms)?"
)
"""The regular expression of a duration."""
_SHAPE: Final = re.compile(DURATION_FORM)


def parse_duration(text: str) -> timedelta:
    """Return a duration.

    Raises:
        BadInput: it is not one.
    """
    shape = _SHAPE.fullmatch(text.strip())
    if shape is None:
        raise BadInput(f"{text!r} is not a duration; write for example 90s, 2m, 1h30m or 250ms")
    hours, minutes, seconds, millis = shape.groups(default="0")
    return timedelta(
        hours=int(hours), minutes=int(minutes), seconds=float(seconds), milliseconds=int(millis)
    )
