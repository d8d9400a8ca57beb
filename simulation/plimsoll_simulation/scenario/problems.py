"""What is wrong with a scenario or a manifest, each with its place and its cure.

Reading goes on after a problem, so that one run names them all.
"""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, override

from plimsoll.domain.errors import BadInput
from plimsoll_simulation.declared import FieldPath

MAX_SHOWN = 50
"""Problems printed at most; the others are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where something stands: `shop.yaml:12`, and the field there."""

    file: str
    line: int | None = None
    field: str = ""

    @override
    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.field}" if self.field else where


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong. All parts are whole phrases, without a full stop."""

    place: Place
    found: str
    allowed: str
    cure: str

    @override
    def __str__(self) -> str:
        return f"{self.place}: found {self.found}; allowed: {self.allowed}. {self.cure}."


class BadScenario(BadInput):
    """A scenario, or a manifest it names, cannot be played; `problems` says all that is wrong."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems[:MAX_SHOWN]]
        if len(self.problems) > MAX_SHOWN:
            lines.append(f"and {len(self.problems) - MAX_SHOWN} more problems like these")
        super().__init__("\n".join(lines))


@dataclass(slots=True)
class Problems:
    """Collects problems; iterating gives them by file and line."""

    found: list[Problem] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    """What is no problem and is not read either, in words, and how often."""

    def add(self, place: Place, *, found: str, allowed: str, cure: str) -> None:
        """Note one problem; the same one twice counts once."""
        problem = Problem(place=place, found=found, allowed=allowed, cure=cure)
        if problem not in self.found:
            self.found.append(problem)

    def check(self) -> None:
        """Raise what was found, if anything was.

        Raises:
            BadScenario: with every problem.
        """
        if self.found:
            raise BadScenario(self)

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Problem]:
        files = list(dict.fromkeys(p.place.file for p in self.found))
        return iter(
            sorted(self.found, key=lambda p: (files.index(p.place.file), p.place.line or 0))
        )


def field_name(path: FieldPath) -> str:
    """Return a path as people write it: `spec.clusters[0].name`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part and all(c.isalnum() or c in "_-" for c in part):
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(part)}]"
    return text


def shown(value: Any) -> str:  # noqa: PLR0911 - one line for each type
    """Return what was found with its type, short and safe to print on a terminal."""
    match value:
        case None:
            return "nothing (null)"
        case bool():
            return f"{str(value).lower()} (a boolean)"
        case int() | float():
            return f"{value} (a number)"
        case str():
            text = json.dumps(value)
            return text if len(text) <= 80 else f"{text[:76]}…"  # noqa: PLR2004 - a line's width
        case list() | tuple():
            return f"a list of {len(value)}" if value else "an empty list"
        case dict():
            return "an empty mapping" if not value else f"a mapping with {listed(value)}"
        case _:
            return type(value).__name__


def listed(names: Iterable[object]) -> str:
    """Return names with commas between, cut after a dozen."""
    texts = [str(name) for name in names]
    return ", ".join(texts[:12]) + (f", and {len(texts) - 12} more" if len(texts) > 12 else "")  # noqa: PLR2004 - a dozen


def nearest(word: str, allowed: Collection[str], *, alike: float = 0.6) -> str | None:
    """Return the allowed word that was probably meant, which is alike by so much, of 1."""
    lower = {a.lower(): a for a in sorted(allowed)}
    close = difflib.get_close_matches(word.lower(), list(lower), n=1, cutoff=alike)
    return lower[close[0]] if close else None


def rename(word: str, allowed: Collection[str], otherwise: str) -> str:
    """Return the cure for a word that is not known."""
    meant = nearest(word, allowed)
    return f"Write {meant}" if meant else otherwise
