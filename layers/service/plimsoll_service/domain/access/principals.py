"""Who may talk to the service: agents of clusters, and people, each with one key, of one tenant.

Both come in by a join token, which an operator gives out and which is good once. What is stored of a
token is its hash, and of a key its public half: who reads the table can prove to be nobody.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Final

from plimsoll.domain.errors import BadInput
from plimsoll_service.domain.access.grants import BY_KEY, Grant, PersonRole

JOIN_LIFE: Final = timedelta(hours=1)
"""How long a join token is good for, unless its operator says less."""
TOKEN_LIFE: Final = timedelta(minutes=10)
"""How long an access token is good for: what a thief of one has."""
REVOCATION_KEPT: Final = timedelta(days=1)
"""How long a revocation is remembered: longer than any join token from before it is good for."""
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


class Role(StrEnum):
    """What somebody came in as."""

    AGENT = "agent"
    PERSON = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """What a join token lets in."""

    tenant: str
    role: Role
    name: str
    """Of the cluster, or of the person, within the tenant."""
    expires: datetime

    @property
    def subject(self) -> str:
        """The id that comes of it: the same again for another key of the same cluster."""
        return subject_of(self.tenant, self.role, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Somebody who was let in."""

    subject: str
    tenant: str
    role: Role
    name: str
    kid: str
    """Names the key; of a session or an API token its id."""
    public_key: bytes
    """Empty where there is a session or an API token, and no key."""
    cluster_uid: str
    """Of the namespace kube-system; of a person the word `person`."""
    grants: tuple[Grant, ...] = ()
    """What a person may do; of an agent none."""

    def may(self, role: PersonRole, cluster: str | None = None) -> bool:
        """Whether a person may do a role's work on a cluster; None: on the tenant as a whole."""
        return any(grant.covers(role, cluster) for grant in self.grants)

    @property
    def highest(self) -> PersonRole | None:
        """The highest role that a person has anywhere; None: an agent."""
        return max((grant.role for grant in self.grants), key=lambda r: r.rank, default=None)

    @classmethod
    def admitted(cls, invitation: Invitation, public_key: bytes, cluster_uid: str) -> Principal:
        """Return whom an invitation lets in with a key."""
        return cls(
            subject=invitation.subject,
            tenant=invitation.tenant,
            role=invitation.role,
            name=invitation.name,
            kid=kid_of(public_key),
            public_key=public_key,
            cluster_uid=cluster_uid,
            grants=granted_by_key(invitation.role),
        )


def granted_by_key(role: Role) -> tuple[Grant, ...]:
    """Return what whoever came in by a key may do as a person."""
    return BY_KEY if role is Role.PERSON else ()


def subject_of(tenant: str, role: Role, name: str) -> str:
    """Return the id of a cluster or a person of a tenant."""
    told = sha256(f"{tenant}/{role}/{name}".encode()).hexdigest()
    return f"{role[0]}-{told[:24]}"


def kid_of(public_key: bytes) -> str:
    """Return how a key is named."""
    return f"k-{sha256(public_key).hexdigest()[:24]}"


def checked_name(name: str, what: str) -> str:
    """Return a name that may stand in the keys of tables and in policies.

    Raises:
        BadInput: it may not: `*` and `#` would reach the data of others.
    """
    if _NAME.fullmatch(name) is None:
        raise BadInput(
            f"{what} is {name[:64]!r}: use lower-case letters, digits and dashes, 40 at most"
        )
    return name
