"""What people do about people: sign in, sign out, see who has access, make and revoke tokens."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.errors import BadInput, NotFound
from plimsoll_service.domain.access import (
    ApiToken,
    Binding,
    Grant,
    PersonRole,
    Principal,
    Session,
    checked_grant,
)
from plimsoll_service.domain.errors import Forbidden
from plimsoll_service.services.audit import AuditLog, entry_of
from plimsoll_service.services.ports import Tenants
from plimsoll_service.services.relying_party import RelyingParty
from plimsoll_service.services.sessions import Sessions
from plimsoll_service.wire import people as wire
from plimsoll_service.wire.audit import Action
from plimsoll_service.wire.documents import Malformed

MOST_SESSIONS: Final = 1000
"""Of an answer."""


def sign_in(
    party: RelyingParty, sessions: Sessions, asked: wire.SignIn, now: datetime
) -> wire.SignedIn:
    """Begin a session by what a sign-in brought.

    Raises:
        Malformed: it brought neither a code nor a device code, or both.
        Unproven, Throttled, Temporary: see `RelyingParty`.
        Forbidden, BadInput: see `Sessions.begin`.
    """
    if (asked.code is None) is (asked.device_code is None):
        raise Malformed("give either code or device_code")
    identity = (
        party.redeem(asked.code, asked.verifier, asked.nonce, asked.redirect_uri, now)
        if asked.code is not None
        else party.redeem_device(asked.device_code or "", now)
    )
    try:
        bearer, session = sessions.begin(identity, asked.tenant or None, now)
    except BadInput as error:
        raise Malformed(str(error)) from error
    return wire.SignedIn(
        token=bearer.text,
        tenant=session.tenant,
        person=session.person,
        name=session.name,
        expires=session.expires,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleService:
    """What admins see and do about the people of their tenant."""

    sessions: Sessions
    tenants: Tenants

    def people(self, admin: Principal, now: datetime) -> wire.People:
        """Return who has access to an admin's tenant by the issuer or by a token.

        Raises:
            Forbidden: they are no admin.
        """
        refuse_unless_admin(admin)
        return people_of(self.sessions, admin.tenant, now)

    def end(self, admin: Principal, its: str, now: datetime) -> wire.Ended:
        """End a session, or revoke an API token, of an admin's tenant.

        Raises:
            Forbidden: they are no admin.
            NotFound: there is none of that id, or it is over.
        """
        action = Action.REVOKE_TOKEN if its.startswith("t-") else Action.REVOKE
        path = f"{'tokens' if its.startswith('t-') else 'sessions'}/{its}"
        self._refuse_others(admin, action, path, now)
        if not self.sessions.end(admin.tenant, its):
            raise NotFound(f"there is no session or token {its[:64]}")
        self._log(admin).append(entry_of(admin, action, path, outcome="done", now=now))
        return wire.Ended(id=its)

    def make_token(self, admin: Principal, asked: wire.NewToken, now: datetime) -> wire.MadeToken:
        """Make an API token for an admin's tenant.

        Raises:
            Forbidden: they are no admin.
            Malformed: there is no such token.
        """
        self._refuse_others(admin, Action.CREATE_TOKEN, "tokens", now)
        try:
            bearer, token = self.sessions.make_token(
                admin.tenant,
                asked.name,
                grant_of(asked.grant),
                made_by=admin.name,
                life=timedelta(days=asked.days),
                now=now,
            )
        except BadInput as error:
            raise Malformed(str(error)) from error
        path = f"tokens/{token.id}"
        made_row = entry_of(admin, Action.CREATE_TOKEN, path, outcome="done", now=now)
        self._log(admin).append(made_row)
        return wire.MadeToken(id=token.id, token=bearer.text, expires=token.expires)

    def sign_out(self, person: Principal) -> wire.Ended:
        """End the session that a request came by.

        Raises:
            NotFound: it came by a key or a token.
        """
        if not person.kid.startswith("s-") or not self.sessions.end(person.tenant, person.kid):
            raise NotFound("this is no session")
        return wire.Ended(id=person.kid)

    def _refuse_others(self, admin: Principal, action: Action, path: str, now: datetime) -> None:
        try:
            refuse_unless_admin(admin)
        except Forbidden as error:
            log = self._log(admin)
            log.append(entry_of(admin, action, path, outcome="refused", now=now, reason=str(error)))
            raise

    def _log(self, admin: Principal) -> AuditLog:
        return self.tenants.of(admin.tenant).audit


def people_of(sessions: Sessions, tenant: str, now: datetime) -> wire.People:
    """Return who has access to a tenant by the issuer or by a token."""
    live = sessions.live(tenant, now)
    return wire.People(
        bindings=tuple(map(_binding, sessions.store.bindings(tenant))),
        sessions=tuple(map(_session, live[:MOST_SESSIONS])),
        tokens=tuple(map(_token, sessions.tokens(tenant, now))),
        left_out=len(live[MOST_SESSIONS:]),
    )


def refuse_unless_admin(person: Principal) -> None:
    """Let only admins pass.

    Raises:
        Forbidden: they are none.
    """
    if not person.may(PersonRole.ADMIN):
        raise Forbidden("this is for admins of the tenant")


def grant_of(limits: wire.Limits) -> Grant:
    """Return the grant of what was asked for.

    Raises:
        BadInput: see `checked_grant`.
    """
    return checked_grant(PersonRole(limits.role), limits.clusters or ())


def _token(token: ApiToken) -> wire.TokenRow:
    return wire.TokenRow(
        id=token.id,
        name=token.name,
        grant=_limits(token.grant),
        made_by=token.made_by,
        made=token.made,
        expires=token.expires,
        seen=token.seen,
    )


def _session(session: Session) -> wire.SessionRow:
    return wire.SessionRow(
        id=session.id,
        person=session.person,
        name=session.name,
        groups=tuple(sorted(session.groups)),
        began=session.began,
        seen=session.seen,
        expires=session.expires,
    )


def _binding(binding: Binding) -> wire.BindingRow:
    return wire.BindingRow(group=binding.group, grant=_limits(binding.grant))


def _limits(grant: Grant) -> wire.Limits:
    clusters = None if grant.clusters is None else tuple(sorted(grant.clusters))
    return wire.Limits(role=grant.role.value, clusters=clusters)
