"""Durations as scenarios write them: `90s`, `2m`, `1h30m`, `250ms`, and ranges `50s..90s`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, override

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import DURATION_FORM, parse_duration

EXAMPLES = "a duration such as 90s, 2m, 1h30m or 250ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A duration, or a range that one is drawn from by the seed."""

    least: timedelta
    most: timedelta

    @override
    def __str__(self) -> str:
        least, most = words(self.least), words(self.most)
        return least if least == most else f"{least}..{most}"

    def at(self, share: float) -> timedelta:
        """Return the duration at a share of the range, 0 to 1, to the millisecond."""
        drawn = self.least + (self.most - self.least) * share
        return timedelta(milliseconds=round(drawn / timedelta(milliseconds=1)))


def parse_span(text: str) -> Span:
    """Return a duration or a range of them.

    Raises:
        BadInput: it is neither, or the range ends before it begins.
    """
    first, dots, last = text.partition("..")
    least = parse_duration(first)
    most = parse_duration(last) if dots else least
    if most < least:
        raise BadInput(f"{text!r} ends before it begins; write the shorter duration first")
    return Span(least=least, most=most)


def words(duration: timedelta) -> str:
    """Return a duration as scenarios write it."""
    millis = round(duration / timedelta(milliseconds=1))
    text = ""
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, millis = divmod(millis, size)
        text += f"{count}{unit}" if count else ""
    return text or "0s"


def _read(parse: Callable[[str], Any]) -> BeforeValidator:
    def read(value: Any) -> Any:
        try:
            return parse(value) if isinstance(value, str) else value
        except BadInput as error:
            raise ValueError(str(error)) from error

    return BeforeValidator(read)


type Duration = Annotated[
    timedelta,
    _read(parse_duration),
    PlainSerializer(words),
    WithJsonSchema({"type": "string", "title": EXAMPLES, "pattern": f"^{DURATION_FORM}$"}),
]
type DurationOrRange = Annotated[
    Span,
    _read(parse_span),
    PlainSerializer(str),
    WithJsonSchema(
        {
            "type": "string",
            "title": "a duration such as 70s, or a range such as 50s..90s, the shorter one first",
            "pattern": f"^{DURATION_FORM}(\\.\\.{DURATION_FORM})?$",
        }
    ),
]
