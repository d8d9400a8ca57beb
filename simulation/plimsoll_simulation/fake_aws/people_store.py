"""The in-memory twin of the table of people: for rigs and for tests.

It holds to the same contract suite as AWS's (`tests/contract/test_people_store.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from plimsoll_service.domain.access import ApiToken, Binding, Session


@dataclass(slots=True)
class MemoryPeople:
    """Bindings of groups, sessions and API tokens."""

    _bindings: dict[tuple[str, str], Binding] = field(default_factory=dict)
    _sessions: dict[tuple[str, str], Session] = field(default_factory=dict)
    _tokens: dict[tuple[str, str], ApiToken] = field(default_factory=dict)

    def bind(self, binding: Binding) -> None:
        """Bind a group to a tenant."""
        self._bindings[binding.tenant, binding.group] = binding

    def unbind(self, tenant: str, group: str) -> bool:
        """Delete a binding; whether it was there."""
        return self._bindings.pop((tenant, group), None) is not None

    def bindings(self, tenant: str | None) -> Sequence[Binding]:
        """Return the bindings of a tenant; None: of all."""
        return [b for b in self._bindings.values() if tenant in {None, b.tenant}]

    def begin(self, session: Session) -> None:
        """Keep a session."""
        self._sessions[session.tenant, session.id] = session

    def session(self, tenant: str, session: str) -> Session | None:
        """Return a session by its id."""
        return self._sessions.get((tenant, session))

    def sessions(self, tenant: str) -> Sequence[Session]:
        """Return the sessions of a tenant."""
        return [s for s in self._sessions.values() if s.tenant == tenant]

    def keep(self, token: ApiToken) -> None:
        """Keep an API token."""
        self._tokens[token.tenant, token.id] = token

    def token(self, tenant: str, token: str) -> ApiToken | None:
        """Return an API token by its id."""
        return self._tokens.get((tenant, token))

    def tokens(self, tenant: str) -> Sequence[ApiToken]:
        """Return the API tokens of a tenant."""
        return [t for t in self._tokens.values() if t.tenant == tenant]

    def seen(self, tenant: str, its: str, now: datetime) -> None:
        """Write down that a session or token was used."""
        if session := self._sessions.get((tenant, its)):
            self._sessions[tenant, its] = replace(session, seen=now)
        if token := self._tokens.get((tenant, its)):
            self._tokens[tenant, its] = replace(token, seen=now)

    def end(self, tenant: str, its: str) -> bool:
        """Delete a session or token; whether it was there."""
        found = self._sessions.pop((tenant, its), None), self._tokens.pop((tenant, its), None)
        return any(found)
