"""What the API refuses, beside the errors of `plimsoll.domain.errors`."""

from __future__ import annotations

from plimsoll.domain.errors import Refused


class Unproven(Refused):
    """Who asks has not shown who they are: get a new token, or enrol again."""


class Forbidden(Refused):
    """Who asks is known, and may not do that."""


class TooLarge(Refused):
    """What was sent is larger than is taken."""


class Changed(Refused):
    """What is decided about has changed since it was seen: look at it again. The message says what changed."""


class VersionMissing(Refused):
    """The request does not name the version that was seen: name it."""
