"""Builders of who talks to the optimisation service: keys, enrolments, assertions, signed requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from plimsoll_service.domain.access.principals import Invitation, Principal, Role
from plimsoll_service.services.access import SignedRequest, digest_of
from plimsoll_service.services.ports import Members
from plimsoll_service.wire.access import (
    Assertion,
    Enrolment,
    TokenRequest,
    assertion_message,
    enrolment_message,
    payload_of,
    request_message,
)

KUBE_SYSTEM = "0d5c7f1e-5f2c-4d3a-9b7e-2f6a1c8e4b90"


@dataclass
class Key:
    """A private key, the same for the same seed."""

    seed: int = 1
    numbers: count[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(bytes([self.seed]) * 32)

    @property
    def public(self) -> bytes:
        return self._key.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        return self._key.sign(message)

    def enrolment(self, join_token: str, cluster_uid: str = KUBE_SYSTEM) -> Enrolment:
        return Enrolment(
            join_token=join_token,
            public_key=self.public,
            cluster_uid=cluster_uid,
            signature=self.sign(enrolment_message(join_token, self.public, cluster_uid)),
        )

    def assertion(
        self, subject: str, kid: str, at: datetime, *, jti: str = "", life: int = 60
    ) -> TokenRequest:
        iat = int(at.timestamp())
        said = Assertion(
            cluster_id=subject,
            kid=kid,
            iat=iat,
            exp=iat + life,
            jti=jti or f"jti-{self.seed}-{next(self.numbers)}",
        )
        payload = payload_of(said)
        return TokenRequest(payload=payload, signature=self.sign(assertion_message(payload)))

    def request(
        self, method: str, path: str, at: datetime, body: bytes = b"", query: str = ""
    ) -> SignedRequest:
        timestamp = int(at.timestamp())
        message = request_message(method, path, query, timestamp, body)
        return SignedRequest(
            method=method,
            path=path,
            query=query,
            timestamp=str(timestamp),
            signature=self.sign(message),
            body=body,
        )


def invitation(
    tenant: str = "acme", name: str = "shop", *, role: Role = Role.AGENT, now: datetime
) -> Invitation:
    return Invitation(tenant=tenant, role=role, name=name, expires=now + timedelta(hours=1))


def agent_of(key: Key, tenant: str = "acme", name: str = "shop", *, now: datetime) -> Principal:
    return Principal.admitted(invitation(tenant, name, now=now), key.public, KUBE_SYSTEM)


def person_of(name: str = "ada", tenant: str = "acme", *, now: datetime) -> Principal:
    """Return a person with a key of their own, who is an admin."""
    invited = invitation(tenant, name, role=Role.PERSON, now=now)
    return Principal.admitted(invited, Key().public, "person")


def admitted(
    members: Members, key: Key, invited: Invitation, cluster_uid: str = KUBE_SYSTEM
) -> Principal:
    """Let a key in by an invitation, as it is let in whatever was there before."""
    token = f"{invited.subject} for {key.seed} at {invited.expires}"
    members.invite(digest_of(token), invited)
    now = invited.expires - timedelta(hours=1)
    found = members.admit(digest_of(token), key.public, cluster_uid, now)
    assert found is not None
    return found


__all__ = ["KUBE_SYSTEM", "Key", "admitted", "agent_of", "digest_of", "invitation", "person_of"]
