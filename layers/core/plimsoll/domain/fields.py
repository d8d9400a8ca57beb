"""Reads untyped JSON field by field, so that an error names the field.

AWS events and our own records are complete: a missing field is an error where it is `required`, and
what is accepted is bounded. Kubernetes objects have types instead, in `plimsoll.adapters.kubernetes`.
"""

from __future__ import annotations

import email.utils
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Self

from plimsoll.domain.errors import BadInput

WHOLE_LIMIT: Final = 2**63 - 1
"""No field of Kubernetes holds a larger number."""
LIST_LIMIT_ITEMS: Final = 1000
"""Items of a list, where its reader states no limit of its own: more than anybody means."""
TEXT_LIMIT_CHARACTERS: Final = 256
ARN_LIMIT_CHARACTERS: Final = 1024
"""Characters: more than any field that we keep needs, and few enough to write on a Node."""

INSTANCE: Final = re.compile(r"i-(?:[0-9a-f]{8}|[0-9a-f]{17})")
"""Instance ids have 17 digits since 2016; older accounts still hold some with 8."""

_TRACEPARENT: Final = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_ACCOUNT: Final = re.compile(r"[0-9]{12}")
_REGION: Final = re.compile(r"[a-z]{2,4}(?:-[a-z]+)+-[0-9]{1,2}")
_YEARS: Final = range(2000, 2101)
_TIMES: Final = tuple(datetime(year, 1, 1, tzinfo=UTC) for year in (_YEARS[0], _YEARS[-1]))
_NO_PAIRS: Final[Mapping[str, Any]] = {}


def clip(value: object, limit: int = 80) -> str:
    """Return an untrusted value for a message, too short to fill the log; odd characters escaped."""
    match value:
        case str():
            shown = repr(value[:limit])
        case int() if abs(value) > WHOLE_LIMIT:
            shown = "a number of more than 19 digits"  # thousands of digits are no text in Python
        case None | int() | float():
            shown = repr(value)
        case _:
            shown = type(value).__name__
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def traceparent_of(said: object) -> str | None:
    """Return a traceparent of W3C Trace Context, version 00; None for whatever else it is: nothing fails by a trace.

    https://www.w3.org/TR/trace-context/#traceparent-header
    """
    return said if isinstance(said, str) and _TRACEPARENT.fullmatch(said) else None


def retry_after_of(*said: object) -> float | None:
    """Return the seconds that the first of these asks us to wait; None where none is a number.

    The header Retry-After may hold a date instead, which is ignored.
    """
    for each in said:
        try:
            return max(0.0, float(each))  # type: ignore[arg-type] # None raises as a word does
        except (TypeError, ValueError):
            continue
    return None


def parse_time(text: str) -> datetime:
    """Read ISO 8601 (Kubernetes, EventBridge, Auto Scaling) or RFC 1123 (Health) as UTC.

    The weekday of an RFC 1123 date is not compared with the date: AWS's own samples get it wrong.

    Raises:
        BadInput: it is no time, or has no offset from UTC.
    """
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        try:
            read = email.utils.parsedate_to_datetime(text)
        except (ValueError, TypeError, OverflowError):
            raise BadInput(
                f"must be a time such as 2026-11-17T14:14:14Z, not {clip(text)}"
            ) from None
    if read.tzinfo is None:
        raise BadInput(f"must state its offset from UTC, as in {text[:40]}Z")
    try:
        return read.astimezone(UTC)
    except OverflowError:
        raise BadInput(f"lies before or after all years: {clip(text)}") from None


def _encodes(text: str) -> bool:
    """Whether a string can be written anywhere: half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Field:
    """A value in a JSON document, and its path. The path is spelt only when it is needed."""

    __slots__ = ("_name", "_parent", "value")

    def __init__(self, value: Any, name: str = "", parent: Field | None = None) -> None:
        self.value = value
        self._name = name
        self._parent = parent

    def __getitem__(self, key: str) -> Self:
        return type(self)(self._mapping().get(key), key, self)

    def __bool__(self) -> bool:
        return bool(self.value)

    @property
    def path(self) -> str:
        """The path of this field, such as `spec.containers[0].resources`."""
        before = self._parent.path if self._parent is not None else ""
        dot = "." if before and not self._name.startswith("[") else ""
        return f"{before}{dot}{self._name}"

    def wrong(self, expected: str) -> BadInput:
        """Return the error that this field is not what it should be."""
        found = "and is missing" if self.value is None else f"not {clip(self.value)}"
        return BadInput(f"{self.path or 'the object'}: must be {expected}, {found}")

    def each(self, limit: int = LIST_LIMIT_ITEMS) -> Iterator[Self]:
        """Yield the entries of a list; a missing one has none."""
        if self.value is None:
            return
        if not isinstance(self.value, list | tuple):
            raise self.wrong("a list")
        if len(self.value) > limit:
            raise BadInput(f"{self.path}: has {len(self.value)} items, more than {limit}")
        for index, item in enumerate(self.value):
            yield type(self)(item, f"[{index}]", self)

    def pairs(self, limit: int) -> Iterator[tuple[str, Self]]:
        """Yield the names of an object with their fields; a missing one has none, and an empty name is left out."""
        found = self._mapping()
        if len(found) > limit:
            raise BadInput(f"{self.path}: has {len(found)} entries, more than {limit}")
        for name in found:
            if name:
                yield str(name), self[name]

    def whole(self, least: int, most: int, *, default: int | None = None) -> int:
        """Return a whole number within bounds; the default, if any, where it is missing."""
        value = default if self.value is None else self.value
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.wrong(f"a whole number from {least} to {most}")
        return value

    def required(self, *, limit: int = TEXT_LIMIT_CHARACTERS) -> str:
        """Return a string that is there, is not empty and has at most `limit` characters."""
        if not isinstance(self.value, str) or not self.value or not _encodes(self.value):
            raise self.wrong("a string")
        if len(self.value) > limit:
            raise BadInput(f"{self.path}: is longer than {limit} characters")
        return self.value

    def optional(self, *, limit: int = TEXT_LIMIT_CHARACTERS) -> str | None:
        """Return a string of at most `limit` characters; None where it is missing or empty."""
        return None if self.value in (None, "") else self.required(limit=limit)

    def matching(self, pattern: re.Pattern[str], expected: str) -> str:
        """Return a required string that matches a pattern as a whole."""
        value = self.required()
        if not pattern.fullmatch(value):
            raise self.wrong(expected)
        return value

    def instance(self) -> str:
        """Return an instance id."""
        return self.matching(INSTANCE, "an instance id such as i-0b662ef9931388ba0")

    def account(self) -> str:
        """Return an account id: a string of 12 digits, which may begin with zeros."""
        return self.matching(_ACCOUNT, "an account id of 12 digits")

    def region(self) -> str:
        """Return the name of a region."""
        return self.matching(_REGION, "a region such as us-east-1")

    def time(self) -> datetime:
        """Return a required time, as UTC."""
        text = self.required()
        try:
            time = parse_time(text)
        except BadInput as error:
            raise BadInput(f"{self.path}: {error}") from None
        if time.year not in _YEARS:
            raise BadInput(f"{self.path}: lies in the year {time.year}")
        return time

    def time_or_bound(self) -> datetime | None:
        """Return a time, as UTC; None where it is missing, and the nearest that we count with.

        A grace period of centuries makes the API server write years that nobody lives to see.
        """
        if self.value in (None, ""):
            return None
        said = parse_time(self.required())
        return min(max(said, _TIMES[0]), _TIMES[1])

    def optional_time(self) -> datetime | None:
        """Return a time, as UTC; None where it is missing or empty."""
        return None if self.value in (None, "") else self.time()

    def flag(self, *, default: bool = False) -> bool:
        """Return true or false."""
        if self.value is None:
            return default
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value

    def present(self) -> Self:
        """Return the field itself, which must hold an object."""
        if not isinstance(self.value, Mapping):
            raise self.wrong("an object")
        return self

    def _mapping(self) -> Mapping[str, Any]:
        return _NO_PAIRS if self.value is None else self.present().value
