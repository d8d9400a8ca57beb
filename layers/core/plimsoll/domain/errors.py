"""Errors named for what the caller does next.

PlimsollError
├── Temporary          let the message come back; try again later
│   ├── Conflict       somebody else wrote first: read again, then decide again
│   ├── Blocked        a PodDisruptionBudget says not now
│   └── Throttled      the API asks for patience: honour `retry_after`
└── Permanent          trying again cannot help: record it, and let the message go
├── NotFound       what it was about is gone, which is often the aim
├── Refused        no right, no capacity or no quota: somebody must change something
└── BadInput       the words of a person or an event are wrong: say where, and the cure
"""

from __future__ import annotations


class PlimsollError(Exception):
    """Anything that Plimsoll itself raises on purpose."""


class Temporary(PlimsollError):  # noqa: N818 - named for what the caller does next
    """It may work later; nothing was lost."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds the other side asked us to wait, if it did."""


class Conflict(Temporary):
    """The object changed since it was read (409, or a failed condition)."""


class Blocked(Temporary):
    """An eviction was refused by a PodDisruptionBudget (429 with the cause DisruptionBudget)."""


class Throttled(Temporary):
    """The API protects itself: 429 without that cause, or an AWS throttling code."""


class Permanent(PlimsollError):  # noqa: N818 - named for what the caller does next
    """Trying again cannot help."""


class NotFound(Permanent):
    """What the call was about does not exist (any more)."""


class Refused(Permanent):
    """The other side said no for a reason that only a person, or another choice, can change."""


class BadInput(Permanent):
    """What was given is wrong; the message names the place and the cure."""
