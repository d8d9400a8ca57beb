"""Sessions of people who signed in by the issuer, and API tokens of programs.

Their rows are read at each request: what was ended, unbound or has expired is out at its next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from secrets import token_urlsafe
from typing import Final, Protocol

from plimsoll.domain.errors import BadInput
from plimsoll_service.domain.access import (
    MOST_TOKEN_LIFE,
    ApiToken,
    Bearer,
    BearerKind,
    Binding,
    Grant,
    Identity,
    PersonRole,
    Principal,
    Role,
    Session,
    bound,
    checked_name,
)
from plimsoll_service.domain.errors import Forbidden

SEEN_EVERY: Final = timedelta(minutes=1)
"""How exactly it is written down when a session or token was used last."""
MOST_TOKENS: Final = 100
"""Of one tenant."""
PERSON: Final = "person"
"""Stands where an agent names its cluster."""


class PeopleStore(Protocol):
    """Bindings of groups, sessions and API tokens."""

    def bind(self, binding: Binding) -> None:
        """Bind a group to a tenant; a binding of both that is there is replaced."""
        ...

    def unbind(self, tenant: str, group: str) -> bool:
        """Delete a binding; whether it was there."""
        ...

    def bindings(self, tenant: str | None) -> Sequence[Binding]:
        """Return the bindings of a tenant; None: of all."""
        ...

    def begin(self, session: Session) -> None:
        """Keep a session."""
        ...

    def session(self, tenant: str, session: str) -> Session | None:
        """Return a session by its id, or None: it was ended."""
        ...

    def sessions(self, tenant: str) -> Iterable[Session]:
        """Yield the sessions of a tenant; those that have expired may be among them."""
        ...

    def keep(self, token: ApiToken) -> None:
        """Keep an API token."""
        ...

    def token(self, tenant: str, token: str) -> ApiToken | None:
        """Return an API token by its id, or None: it was revoked."""
        ...

    def tokens(self, tenant: str) -> Iterable[ApiToken]:
        """Yield the API tokens of a tenant; those that have expired may be among them."""
        ...

    def seen(self, tenant: str, its: str, now: datetime) -> None:
        """Write down that a session or token was used. One that is gone stays gone."""
        ...

    def end(self, tenant: str, its: str) -> bool:
        """Delete a session or token by its id; whether it was there."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sessions:
    """Begins, finds and ends sessions and API tokens."""

    store: PeopleStore
    secret: Callable[[], str] = token_urlsafe
    """Returns 32 random bytes in base64url."""

    def begin(
        self, identity: Identity, tenant: str | None, now: datetime
    ) -> tuple[Bearer, Session]:
        """Begin a session of whom the issuer named; return the secret that it is known by, and the session.

        Args:
            identity: Checked by the relying party.
            tenant: Where the groups of the person are bound to several; None: to the only one.
            now: The time.

        Raises:
            Forbidden: no group of the person is bound to the tenant, or to any.
            BadInput: the groups are bound to several tenants: name one.
        """
        found = [b for b in self.store.bindings(tenant) if b.group in identity.groups]
        tenants = sorted({binding.tenant for binding in found})
        if not tenants:
            raise Forbidden(
                f"no group of {identity.name} is bound to "
                f"{'a tenant' if tenant is None else tenant[:64]}: ask its operator for one"
            )
        if len(tenants) > 1:
            raise BadInput(f"you belong to {', '.join(tenants[:20])}: name one of these tenants")
        bearer = Bearer.of(BearerKind.SESSION, tenants[0], self.secret())
        session = Session(
            id=bearer.id,
            tenant=tenants[0],
            person=identity.person,
            name=identity.name,
            groups=frozenset(binding.group for binding in bound(identity.groups, found)),
            began=now,
            seen=now,
        )
        self.store.begin(session)
        return bearer, session

    def find(self, bearer: str, now: datetime) -> Principal | None:
        """Return who shows a bearer, with what they may do now; None: nobody who is let in."""
        read = Bearer.read(bearer)
        if read is None:
            return None
        match read.kind:
            case BearerKind.SESSION:
                return self._by_session(read, now)
            case BearerKind.TOKEN:
                return self._by_token(read, now)

    def end(self, tenant: str, its: str) -> bool:
        """End a session, or revoke an API token, by its id; whether it was there."""
        return self.store.end(tenant, its)

    def end_all(self, tenant: str, person: str) -> int:
        """End all sessions of a person; return how many."""
        theirs = [s.id for s in self.store.sessions(tenant) if s.person == person]
        return sum(self.store.end(tenant, its) for its in theirs)

    def live(self, tenant: str, now: datetime) -> Sequence[Session]:
        """Return the sessions of a tenant that are good, the one that was used last first."""
        found = [session for session in self.store.sessions(tenant) if session.is_live(now)]
        return sorted(found, key=lambda session: session.seen, reverse=True)

    def tokens(self, tenant: str, now: datetime) -> Sequence[ApiToken]:
        """Return the API tokens of a tenant that are good, by name."""
        found = [token for token in self.store.tokens(tenant) if now < token.expires]
        return sorted(found, key=lambda token: (token.name, token.id))

    def make_token(  # noqa: PLR0913 - what a token is
        self, tenant: str, name: str, grant: Grant, *, made_by: str, life: timedelta, now: datetime
    ) -> tuple[Bearer, ApiToken]:
        """Make an API token; return its secret, which is shown this once, and the token.

        Raises:
            BadInput: it would be an admin or live too long, its name is none, or there are too many.
        """
        if grant.role is PersonRole.ADMIN:
            raise BadInput("a token is viewer or operator: people administer people")
        if not timedelta() < life <= MOST_TOKEN_LIFE:
            raise BadInput(f"a token lives for {MOST_TOKEN_LIFE.days} days at most")
        if len(self.tokens(tenant, now)) >= MOST_TOKENS:
            raise BadInput(f"{tenant} has {MOST_TOKENS} tokens: revoke one first")
        bearer = Bearer.of(BearerKind.TOKEN, tenant, self.secret())
        token = ApiToken(
            id=bearer.id,
            tenant=tenant,
            name=checked_name(name, "the name"),
            grant=grant,
            made_by=made_by,
            made=now,
            expires=now + life,
        )
        self.store.keep(token)
        return bearer, token

    def _by_session(self, bearer: Bearer, now: datetime) -> Principal | None:
        session = self.store.session(bearer.tenant, bearer.id)
        if session is None or not session.is_live(now):
            return None
        bindings = bound(session.groups, self.store.bindings(session.tenant))
        if not bindings:
            return None
        if now - session.seen >= SEEN_EVERY:
            self.store.seen(session.tenant, session.id, now)
        return _principal(
            session.id,
            session.tenant,
            session.person,
            session.name,
            tuple(binding.grant for binding in bindings),
        )

    def _by_token(self, bearer: Bearer, now: datetime) -> Principal | None:
        token = self.store.token(bearer.tenant, bearer.id)
        if token is None or now >= token.expires:
            return None
        if token.seen is None or now - token.seen >= SEEN_EVERY:
            self.store.seen(token.tenant, token.id, now)
        return _principal(token.id, token.tenant, token.id, token.name, (token.grant,))


def _principal(
    its: str, tenant: str, subject: str, name: str, grants: tuple[Grant, ...]
) -> Principal:
    return Principal(
        subject=subject,
        tenant=tenant,
        role=Role.PERSON,
        name=name,
        kid=its,
        public_key=b"",
        cluster_uid=PERSON,
        grants=grants,
    )
