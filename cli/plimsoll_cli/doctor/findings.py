"""What a check found, in words, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps

from plimsoll.domain.errors import PlimsollError


class State(StrEnum):
    """How a check ended."""

    OK = "ok"
    INFO = "info"
    """Worth knowing, and right for some installations: nothing must be done."""
    FAIL = "fail"
    """Something must be done."""
    SKIPPED = "skipped"
    """What it checks could not be read, so it may be right or wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check found."""

    check: str = ""
    """The name of the check, or of what it found something about. Empty: that of the check in `CHECKS`."""
    state: State
    says: str
    cure: str | None = None


def ok(says: str, about: str = "") -> Finding:
    """Return that nothing is wrong."""
    return Finding(check=about, state=State.OK, says=says)


def info(says: str, cure: str | None = None, about: str = "") -> Finding:
    """Return something worth knowing."""
    return Finding(check=about, state=State.INFO, says=says, cure=cure)


def fail(says: str, cure: str, about: str = "") -> Finding:
    """Return something that must be fixed, and how."""
    return Finding(check=about, state=State.FAIL, says=says, cure=cure)


def skipped(why: Exception, cure: str | None = None, about: str = "") -> Finding:
    """Return that it could not be read, and why."""
    return Finding(check=about, state=State.SKIPPED, says=str(why), cure=cure)


def unread[T](
    cure: str, said: str = "not read"
) -> Callable[[Callable[[T], Iterator[Finding]]], Callable[[T], Iterator[Finding]]]:
    """Make it worth knowing only that a check cannot be read: many may not read it, and the rest can be fine.

    Args:
        cure: who may read it, or how to look at it otherwise.
        said: what goes before the reason.
    """

    def decorated(run: Callable[[T], Iterator[Finding]]) -> Callable[[T], Iterator[Finding]]:
        @wraps(run)
        def checked(installation: T) -> Iterator[Finding]:
            try:
                yield from run(installation)
            except PlimsollError as error:
                yield info(f"{said}: {error}", cure)

        return checked

    return decorated
