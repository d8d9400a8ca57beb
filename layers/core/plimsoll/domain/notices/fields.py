"""Reads what others wrote: every value is checked, bounded, and named by its place when it is wrong.

A missing key and a key of the wrong type are the same fault to whoever must mend it, so both raise
`BadInput` with the path of the field (`detail.instance-id`). Nothing is guessed here.
"""

from __future__ import annotations

import email.utils
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from plimsoll.domain.errors import BadInput

TEXT_LIMIT: Final = 256
ARN_LIMIT: Final = 1024
"""More than any field that we keep needs, and little enough to write on a Node."""

INSTANCE: Final = re.compile(r"i-(?:[0-9a-f]{8}|[0-9a-f]{17})")
"""Instance ids have 17 digits since 2016; older accounts still hold some with 8."""

_ACCOUNT: Final = re.compile(r"[0-9]{12}")
_REGION: Final = re.compile(r"[a-z]{2,4}(?:-[a-z]+)+-[0-9]{1,2}")
_YEARS: Final = range(2000, 2101)


def clip(value: object, limit: int = 80) -> str:
    """Show a stranger's value in a message without letting it fill the log."""
    shown = repr(value) if not isinstance(value, (dict, list)) else type(value).__name__
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def moment(value: str, *, place: str) -> datetime:
    """Read ISO 8601 (EventBridge, Auto Scaling) or RFC 1123 (Health) as UTC.

    The weekday of an RFC 1123 date is not compared with the date: AWS's own samples get it wrong.
    """
    try:
        read = datetime.fromisoformat(value)
    except ValueError:
        try:
            read = email.utils.parsedate_to_datetime(value)
        except (ValueError, TypeError, OverflowError):
            msg = f"{place}: must be a time such as 2026-11-17T14:14:14Z, not {clip(value)}"
            raise BadInput(msg) from None
    if read.tzinfo is None:
        raise BadInput(f"{place}: must say its offset from UTC, as in {value[:40]}Z")
    if read.year not in _YEARS:
        raise BadInput(f"{place}: lies in the year {read.year}")
    return read.astimezone(UTC)


@dataclass(frozen=True, slots=True)
class Fields:
    """One JSON object, and where it stands in the whole body."""

    values: Mapping[str, object]
    path: str = ""

    def place(self, key: str) -> str:
        """Name a field as its author would look for it."""
        return f"{self.path}.{key}" if self.path else key

    def text(self, key: str, *, limit: int = TEXT_LIMIT) -> str:
        """Read a string that must be there and say something."""
        value = self.values.get(key)
        if not isinstance(value, str) or not value:
            found = "missing" if value is None else f"not {clip(value)}"
            raise BadInput(f"{self.place(key)}: must be a string, and is {found}")
        if len(value) > limit:
            raise BadInput(f"{self.place(key)}: is longer than {limit} characters")
        return value

    def maybe(self, key: str, *, limit: int = TEXT_LIMIT) -> str | None:
        """Read a string that may be absent, null or empty."""
        if self.values.get(key) in (None, ""):
            return None
        return self.text(key, limit=limit)

    def _matching(self, key: str, pattern: re.Pattern[str], what: str) -> str:
        value = self.text(key)
        if not pattern.fullmatch(value):
            raise BadInput(f"{self.place(key)}: must be {what}, not {clip(value)}")
        return value

    def instance(self, key: str) -> str:
        """Read an instance id."""
        return self._matching(key, INSTANCE, "an instance id such as i-0b662ef9931388ba0")

    def account(self, key: str) -> str:
        """Read an account id: a string of 12 digits, which may begin with zeros."""
        return self._matching(key, _ACCOUNT, "an account id of 12 digits")

    def region(self, key: str) -> str:
        """Read the name of a region."""
        return self._matching(key, _REGION, "a region such as us-east-1")

    def time(self, key: str) -> datetime:
        """Read a moment, ISO 8601 or RFC 1123, as UTC."""
        return moment(self.text(key), place=self.place(key))

    def maybe_time(self, key: str) -> datetime | None:
        """Read a moment that may be absent."""
        return self.time(key) if self.maybe(key) else None

    def inner(self, key: str) -> Fields:
        """Read an object inside this one."""
        value = self.values.get(key)
        if not isinstance(value, Mapping):
            found = "missing" if value is None else f"not {clip(value)}"
            raise BadInput(f"{self.place(key)}: must be an object, and is {found}")
        return Fields(value, self.place(key))

    def items(self, key: str, *, limit: int) -> tuple[Fields, ...]:
        """Read a list of objects that may be absent."""
        value = self.values.get(key)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise BadInput(f"{self.place(key)}: must be a list, not {clip(value)}")
        if len(value) > limit:
            raise BadInput(f"{self.place(key)}: has {len(value)} items, more than {limit}")
        read = []
        for index, item in enumerate(value):
            place = f"{self.place(key)}[{index}]"
            if not isinstance(item, Mapping):
                raise BadInput(f"{place}: must be an object, not {clip(item)}")
            read.append(Fields(item, place))
        return tuple(read)
