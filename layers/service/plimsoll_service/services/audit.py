"""Audit rows: appended, never changed. `TenantData.audit` is the log of a tenant, and its admins read it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final, Protocol

from plimsoll_service.domain.access import Principal
from plimsoll_service.wire.audit import Action, AuditEntry, Outcome
from plimsoll_service.wire.documents import MOST_TEXT_CHARACTERS, encode, shortened

KEPT: Final = timedelta(days=400)
"""How long a row is kept after `at`. DynamoDB deletes it then; nothing in the code does."""
MOST_OBJECT_CHARACTERS: Final = 512
MOST_REASON_CHARACTERS: Final = 1024


class AuditLog(Protocol):
    """The audit rows of one tenant."""

    def append(self, entry: AuditEntry) -> None:
        """Append a row. Again is once.

        Raises:
            PlimsollError: it is not known whether the row is there. Appending it again is safe.
        """
        ...

    def list(self, before: str = "") -> Iterator[tuple[str, AuditEntry]]:
        """Yield rows with their keys, newest first. Each page is read when it is asked for.

        Args:
            before: no key at or above it; empty: all.
        """
        ...


def entry_of(  # noqa: PLR0913 - the parts of a row, each named
    by: Principal,
    action: Action,
    object_: str,
    *,
    outcome: Outcome,
    now: datetime,
    version: int = 0,
    reason: str = "",
) -> AuditEntry:
    """Return the row of what a principal did. Texts that are too long are shortened."""
    return AuditEntry(
        at=now,
        who=shortened(by.name, MOST_TEXT_CHARACTERS),
        subject=by.subject,
        role=by.highest or by.role,
        action=action,
        object=shortened(object_, MOST_OBJECT_CHARACTERS),
        version=version,
        outcome=outcome,
        reason=shortened(reason, MOST_REASON_CHARACTERS),
    )


def operators_entry(
    arn: str, action: Action, object_: str, *, now: datetime, reason: str = ""
) -> AuditEntry:
    """Return the row of what an operator did by rights to the stack, past the API."""
    return AuditEntry(
        at=now,
        who=shortened(arn, MOST_TEXT_CHARACTERS),
        role="aws",
        action=action,
        object=shortened(object_, MOST_OBJECT_CHARACTERS),
        outcome="done",
        reason=shortened(reason, MOST_REASON_CHARACTERS),
    )


def key_of(entry: AuditEntry) -> str:
    """Return the key of a row: the time, then a digest of the whole entry. Equal entries have equal keys."""
    return f"{moment(entry.at)}#{sha256(encode(entry)).hexdigest()[:16]}"


def moment(at: datetime) -> str:
    """Return how keys of rows of that time begin, to the microsecond."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
