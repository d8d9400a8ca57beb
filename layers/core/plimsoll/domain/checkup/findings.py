"""What a check found, in words, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

APPLY: Final = "kubectl apply -k infra/cluster"
"""The cure of what is missing in a cluster."""


class State(StrEnum):
    """How a check ended."""

    FINE = "fine"
    NOTE = "note"
    """Worth knowing, and right for some: nothing must be done."""
    MEND = "mend"
    """Something must be done."""
    UNASKED = "not asked"
    """It could not be read, so it may be either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The end of one check."""

    check: str
    state: State
    says: str
    cure: str | None = None


def fine(check: str, says: str) -> Finding:
    """Return that all is well."""
    return Finding(check=check, state=State.FINE, says=says)


def note(check: str, says: str, cure: str | None = None) -> Finding:
    """Return something worth knowing."""
    return Finding(check=check, state=State.NOTE, says=says, cure=cure)


def mend(check: str, says: str, cure: str) -> Finding:
    """Return something that must be mended, and how."""
    return Finding(check=check, state=State.MEND, says=says, cure=cure)


def unasked(check: str, why: Exception, cure: str | None = None) -> Finding:
    """Return that it could not be read, and why."""
    return Finding(check=check, state=State.UNASKED, says=str(why), cure=cure)
