"""Roles of people, and where they hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from plimsoll.domain.errors import BadInput

MOST_CLUSTERS: Final = 20
"""Of one binding or token that is limited to clusters."""


class PersonRole(StrEnum):
    """What a person may do in a tenant. Each may do what the ones before it may."""

    VIEWER = "viewer"
    """Reads."""
    OPERATOR = "operator"
    """Accepts, dismisses and cancels recommendations."""
    ADMIN = "admin"
    """Sees and ends the access of people, makes API tokens, reads the audit."""

    @property
    def rank(self) -> int:
        """Its place among the roles."""
        return list(PersonRole).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A role, in a whole tenant or on some of its clusters."""

    role: PersonRole
    clusters: frozenset[str] | None = None
    """Ids; None: all, and what belongs to the tenant as a whole."""

    def covers(self, role: PersonRole, cluster: str | None) -> bool:
        """Whether it lets a role's work be done on a cluster; None: on the tenant as a whole."""
        if self.role.rank < role.rank:
            return False
        return self.clusters is None or (cluster is not None and cluster in self.clusters)


BY_KEY: Final = (Grant(role=PersonRole.ADMIN),)
"""What a person with a key of their own may do: an operator of the stack invited them, and they are the
way in when the issuer is lost."""


def checked_grant(role: PersonRole, clusters: Iterable[str]) -> Grant:
    """Return a grant; no clusters: of the whole tenant.

    Raises:
        BadInput: an admin is limited to clusters, or there are too many.
    """
    limited = frozenset(clusters)
    if not limited:
        return Grant(role=role)
    if role is PersonRole.ADMIN:
        raise BadInput("an admin is admin of the whole tenant: name no clusters")
    if len(limited) > MOST_CLUSTERS:
        raise BadInput(f"{len(limited)} clusters are too many: name {MOST_CLUSTERS} at most")
    return Grant(role=role, clusters=limited)


def grants_text(grants: Iterable[Grant]) -> str:
    """Return grants as one text, for the context that the authorizer hands to the API."""
    return ";".join(
        f"{grant.role}:{'*' if grant.clusters is None else ','.join(sorted(grant.clusters))}"
        for grant in grants
    )


def grants_of(text: str) -> tuple[Grant, ...]:
    """Return the grants of a text that `grants_text` wrote."""
    pairs = (part.split(":", 1) for part in text.split(";") if part)
    return tuple(
        Grant(
            role=PersonRole(role),
            clusters=None if clusters == "*" else frozenset(clusters.split(",")),
        )
        for role, clusters in pairs
    )
