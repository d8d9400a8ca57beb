"""Errors named for what the caller does next.

PlimsollError
├── Temporary              let the message come back; try again later
│   ├── Conflict           somebody else wrote first: read again, then decide again
│   ├── Blocked            a PodDisruptionBudget or an admission webhook says not now
│   └── Throttled          the API asks for patience: honour `retry_after`
└── Permanent              trying again at once cannot help: record it, or choose otherwise
    ├── NotFound           what it was about is gone, which is often the aim
    ├── BadInput           the words of a person or an event are wrong: say where, and the cure
    │   └── Discardable    whoever sent them is to blame, and may do it at will: log and count, page nobody
    └── Refused            the other side says no until somebody changes something
        ├── MissingRights  grant the right; an API server that has just started may yet read it
        └── NotGrown       a node group gets no nodes: see `plimsoll.domain.node_groups.launch_failures`
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
    """A PodDisruptionBudget (429 with that cause) or an admission webhook does not let a pod go now."""


class Throttled(Temporary):
    """The API protects itself: 429 without that cause, or an AWS throttling code."""


class Permanent(PlimsollError):  # noqa: N818 - named for what the caller does next
    """Trying again cannot help."""


class NotFound(Permanent):
    """What the call was about does not exist (any more)."""


class Refused(Permanent):
    """The other side said no for a reason that only a person, or another choice, can change."""


class MissingRights(Refused):
    """Whoever asked may not do that (403, AccessDenied), or has no credentials."""


class BadInput(Permanent):
    """What was given is wrong; the message names the place and the cure."""


class Discardable(BadInput):
    """It is wrong, and a sender whom nobody trusts made it so: it is logged and counted, and not kept."""
