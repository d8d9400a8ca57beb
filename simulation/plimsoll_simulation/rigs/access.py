"""How somebody reaches a cluster of a drill: address, token, and who signs its certificate."""

from __future__ import annotations

from dataclasses import dataclass, field

from plimsoll.adapters.kubernetes.client import CONNECTIONS, USER_AGENT, ClientTransport


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The way of one user into one cluster."""

    url: str
    token: str = field(repr=False)
    ca: str | None = field(default=None, repr=False)
    """In PEM; None where there is no TLS."""

    def transport(
        self,
        connections: int = CONNECTIONS,
        *,
        as_group: str | None = None,
        user_agent: str = USER_AGENT,
    ) -> ClientTransport:
        """Return what carries requests there, over the official client; see its arguments."""
        return ClientTransport(
            self.url,
            ca=self.ca,
            token=_Known(self.token),
            connections=connections,
            as_group=as_group,
            user_agent=user_agent,
        )


class _Known:
    """A token that never changes."""

    def __init__(self, token: str) -> None:
        self._token = token

    def get(self) -> str:
        return self._token

    def forget(self) -> None:
        pass
