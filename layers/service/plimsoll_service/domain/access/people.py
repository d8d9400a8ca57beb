"""What people may do, and what they are known by: roles, bindings of groups, sessions and API tokens.

A person is whom the company's issuer names: issuer and subject together, and never an e-mail address,
which others may get later. What a session may do is not stored in it: it follows from the bindings of
its groups at each request, so that a group that is unbound takes its people out at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Final

from plimsoll.domain.errors import BadInput
from plimsoll_service.domain.access.grants import Grant
from plimsoll_service.domain.access.principals import checked_name

SESSION_LIFE: Final = timedelta(hours=8)
SESSION_IDLE: Final = timedelta(hours=1)
"""A session that was not used for so long ends."""
MOST_GROUPS: Final = 8
"""Of a session: the bound groups with the highest roles. Each request reads their bindings."""
MOST_TOKEN_LIFE: Final = timedelta(days=365)
MOST_GROUP_CHARACTERS: Final = 256
_MARK: Final = "plimsoll"
"""All bearers begin so: a scanner for secrets recognises them."""
_ID_CHARACTERS: Final = 48
"""Of a digest: 192 bits, which nobody finds a second secret for."""
_SECRET_CHARACTERS: Final = 43
"""What 32 random bytes have in base64url."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What the members of a group of the issuer may do in a tenant."""

    tenant: str
    group: str
    """As the issuer's claim names it."""
    grant: Grant


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Whom the issuer named."""

    issuer: str
    subject: str
    name: str
    """To show. The issuer may change it."""
    groups: frozenset[str]

    @property
    def person(self) -> str:
        """The id of the person: the same in each session."""
        return f"u-{sha256(f'{self.issuer}\n{self.subject}'.encode()).hexdigest()[:24]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A person who signed in. Its secret is stored nowhere."""

    id: str
    tenant: str
    person: str
    name: str
    groups: frozenset[str]
    """Those of the person that were bound to the tenant when it began."""
    began: datetime
    seen: datetime

    @property
    def expires(self) -> datetime:
        """When it ends, unless it is idle before."""
        return self.began + SESSION_LIFE

    def is_live(self, now: datetime) -> bool:
        """Whether it is good still."""
        return now < self.expires and now < self.seen + SESSION_IDLE


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiToken:
    """The access of a program. Its secret is stored nowhere."""

    id: str
    tenant: str
    name: str
    grant: Grant
    made_by: str
    made: datetime
    expires: datetime
    seen: datetime | None = None
    """When it was used last, to the minute; None: never."""


class BearerKind(StrEnum):
    """What a bearer is the secret of."""

    SESSION = "s"
    TOKEN = "t"  # noqa: S105 - no password


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearer:
    """What whoever shows it is known by: the row is found by the digest of the whole."""

    kind: BearerKind
    tenant: str
    text: str

    @classmethod
    def of(cls, kind: BearerKind, tenant: str, secret: str) -> Bearer:
        """Return the bearer of a new secret of 32 random bytes."""
        name = checked_name(tenant, "a tenant")
        return cls(kind=kind, tenant=name, text=f"{_MARK}_{kind}_{name}_{secret}")

    @classmethod
    def read(cls, text: str) -> Bearer | None:
        """Return what a text is the bearer of; None: of nothing."""
        parts = text.split("_", 3)
        if len(parts) != 4 or parts[0] != _MARK or len(parts[3]) != _SECRET_CHARACTERS:  # noqa: PLR2004 - mark, kind, tenant, secret
            return None
        try:
            return cls(
                kind=BearerKind(parts[1]), tenant=checked_name(parts[2], "a tenant"), text=text
            )
        except (ValueError, BadInput):
            return None

    @property
    def id(self) -> str:
        """The id of its session or token."""
        return f"{self.kind}-{sha256(self.text.encode()).hexdigest()[:_ID_CHARACTERS]}"


def csrf_token(bearer: str) -> str:
    """Return what forms of a session carry: no other site knows it, and it does not tell the session's secret."""
    return sha256(f"csrf\n{bearer}".encode()).hexdigest()


def bound(groups: frozenset[str], bindings: Iterable[Binding]) -> Sequence[Binding]:
    """Return the bindings of groups, the highest roles first, `MOST_GROUPS` at most."""
    found = [binding for binding in bindings if binding.group in groups]
    order = sorted(found, key=lambda b: (-b.grant.role.rank, b.grant.clusters is not None, b.group))
    return order[:MOST_GROUPS]
