"""What a check found, in words, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from typing import Final

from plimsoll.domain.errors import PlimsollError

APPLY: Final = "kubectl apply -k infra/cluster"
"""The cure of what is missing in a cluster."""


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
    """The result of one check."""

    check: str
    state: State
    says: str
    cure: str | None = None


def ok(check: str, says: str) -> Finding:
    """Return that nothing is wrong."""
    return Finding(check=check, state=State.OK, says=says)


def info(check: str, says: str, cure: str | None = None) -> Finding:
    """Return something worth knowing."""
    return Finding(check=check, state=State.INFO, says=says, cure=cure)


def fail(check: str, says: str, cure: str) -> Finding:
    """Return something that must be fixed, and how."""
    return Finding(check=check, state=State.FAIL, says=says, cure=cure)


def skipped(check: str, why: Exception, cure: str | None = None) -> Finding:
    """Return that it could not be read, and why."""
    return Finding(check=check, state=State.SKIPPED, says=str(why), cure=cure)


def unread[T](
    check: str, cure: str, said: str = "not read"
) -> Callable[[Callable[[T], Iterator[Finding]]], Callable[[T], Iterator[Finding]]]:
    """Make it worth knowing only that a check cannot be read: many may not read it, and the rest can be fine.

    Args:
        check: the name of the check.
        cure: who may read it, or how to look at it otherwise.
        said: what goes before the reason.
    """

    def decorated(run: Callable[[T], Iterator[Finding]]) -> Callable[[T], Iterator[Finding]]:
        @wraps(run)
        def checked(installation: T) -> Iterator[Finding]:
            try:
                yield from run(installation)
            except PlimsollError as error:
                yield info(check, f"{said}: {error}", cure)

        return checked

    return decorated
