"""Who may talk to the service, and which data each tenant reaches."""

from __future__ import annotations

from plimsoll_service.domain.access.grants import (
    Grant,
    PersonRole,
    checked_grant,
    grants_of,
    grants_text,
)
from plimsoll_service.domain.access.people import (
    MOST_GROUP_CHARACTERS,
    MOST_TOKEN_LIFE,
    SESSION_IDLE,
    SESSION_LIFE,
    ApiToken,
    Bearer,
    BearerKind,
    Binding,
    Identity,
    Session,
    bound,
    csrf_token,
)
from plimsoll_service.domain.access.principals import (
    JOIN_LIFE,
    REVOCATION_KEPT,
    TOKEN_LIFE,
    Invitation,
    Principal,
    Role,
    checked_name,
    granted_by_key,
    subject_of,
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
    "MOST_GROUP_CHARACTERS",
    "MOST_TOKEN_LIFE",
    "REVOCATION_KEPT",
    "SESSION_IDLE",
    "SESSION_LIFE",
    "TOKEN_LIFE",
    "ApiToken",
    "Bearer",
    "BearerKind",
    "Binding",
    "Grant",
    "Identity",
    "Invitation",
    "PersonRole",
    "Principal",
    "Role",
    "Session",
    "bound",
    "checked_grant",
    "checked_name",
    "csrf_token",
    "document_key",
    "granted_by_key",
    "grants_of",
    "grants_text",
    "leading_key",
    "object_prefixes",
    "session_policy",
    "snapshot_key",
    "subject_of",
]
