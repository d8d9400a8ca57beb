"""Who may talk to the service, and which data each tenant reaches."""

from __future__ import annotations

from plimsoll_service.domain.access.principals import (
    JOIN_LIFE,
    REVOCATION_KEPT,
    TOKEN_LIFE,
    Invitation,
    Principal,
    Role,
    checked_name,
)
from plimsoll_service.domain.access.tenancy import (
    document_key,
    leading_key,
    object_prefixes,
    session_policy,
    snapshot_key,
)

__all__ = [
    "JOIN_LIFE",
    "REVOCATION_KEPT",
    "TOKEN_LIFE",
    "Invitation",
    "Principal",
    "Role",
    "checked_name",
    "document_key",
    "leading_key",
    "object_prefixes",
    "session_policy",
    "snapshot_key",
]
