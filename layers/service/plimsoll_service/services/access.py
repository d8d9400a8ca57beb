"""Enrolment, access tokens, and who a request is by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final, Protocol

from plimsoll_service.domain.access import TOKEN_LIFE, Principal, Role
from plimsoll_service.domain.errors import Forbidden, Unproven
from plimsoll_service.services.cluster_rows import remember_cluster
from plimsoll_service.services.limits import count
from plimsoll_service.services.ports import Members, Tenants
from plimsoll_service.wire.access import (
    ASSERTION_LIFE,
    CLOCK_SKEW,
    Assertion,
    Enrolled,
    Enrolment,
    Granted,
    InstructionKey,
    TokenRequest,
    assertion_message,
    enrolment_message,
    request_message,
)
from plimsoll_service.wire.documents import decode

TOKENS_PER_MINUTE: Final = 30
"""Of one key. A token lasts ten minutes, and the command line asks for one each time."""

type Verify = Callable[[bytes, bytes, bytes], bool]
"""Whether a signature of a message is by a public key: key, signature, message."""


class Tokens(Protocol):
    """Access tokens."""

    def issue(self, principal: Principal, expires: datetime) -> str:
        """Return a token for a principal."""
        ...

    def read(self, token: str, now: datetime) -> tuple[str, str] | None:
        """Return whom a token names, by subject and key; None: it is forged, or no longer good."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedRequest:
    """A request as it came, for its signature."""

    method: str
    path: str
    query: str
    timestamp: str
    signature: bytes
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessService:
    """Lets agents and people in, and says who they are."""

    members: Members
    tenants: Tenants
    tokens: Tokens
    verify: Verify
    instruction_keys: Callable[[], Sequence[InstructionKey]]
    """The public keys that executors pin."""

    def enrol(self, asked: Enrolment, now: datetime) -> Enrolled:
        """Admit a key by a join token. The current key by its own token gets the same answer again.

        Raises:
            Unproven: the token is not good any more, or the key is not theirs.
            Conflict: a cluster of that name is enrolled already, and is another one.
        """
        message = enrolment_message(asked.join_token, asked.public_key, asked.cluster_uid)
        if not self.verify(asked.public_key, asked.signature, message):
            raise Unproven("the enrolment is not signed by the key that it names")
        keys = tuple(self.instruction_keys())  # may fail: read before the token is spent
        principal = self.members.admit(
            digest_of(asked.join_token), asked.public_key, asked.cluster_uid, now
        )
        if principal is None:
            raise Unproven(
                "the join token is unknown, has expired, was used, or is of before a revocation or "
                "another enrolment: ask for another"
            )
        self._remember(principal, now)
        return Enrolled(
            cluster_id=principal.subject,
            kid=principal.kid,
            instruction_keys=keys,
        )

    def grant(self, asked: TokenRequest, now: datetime) -> Granted:
        """Return an access token for a signed assertion.

        Raises:
            Unproven: the key is not let in, or the assertion is forged, old, or was used.
            Throttled: the holder of the key asks too often. Nobody else can have that said.
        """
        said = decode(asked.payload, Assertion)
        principal = self.members.get(said.cluster_id)
        if (
            principal is None
            or principal.kid != said.kid
            or not self.verify(
                principal.public_key, asked.signature, assertion_message(asked.payload)
            )
        ):
            raise Unproven("the assertion is not signed by a key that is let in")
        if not 0 < said.exp - said.iat <= ASSERTION_LIFE.total_seconds():
            raise Unproven("the assertion claims to be good for longer than it may be")
        skew = CLOCK_SKEW.total_seconds()
        if not said.iat - skew <= now.astimezone(UTC).timestamp() <= said.exp + skew:
            raise Unproven(
                f"the assertion was made at {said.iat}; here it is {int(now.timestamp())}"
            )
        # Checked after the signature: only the holder of the key can use up a word.
        if not self.members.once(
            f"{principal.subject}/{said.jti}", now + ASSERTION_LIFE + 2 * CLOCK_SKEW
        ):
            raise Unproven("the assertion was used before")
        # Only what is new counts: whoever recorded an assertion cannot use the limit up by sending it again.
        count(self.members, principal.subject, "tokens", most=TOKENS_PER_MINUTE, now=now)
        return self._granted(principal, now)

    def renew(self, agent: Principal, now: datetime) -> Granted:
        """Return another access token for an agent that holds one and signed the request for it.

        Raises:
            Throttled: it asks too often. The limit is apart from that of assertions.
        """
        count(self.members, agent.subject, "renewals", most=TOKENS_PER_MINUTE, now=now)
        return self._granted(agent, now)

    def _granted(self, principal: Principal, now: datetime) -> Granted:
        self._remember(principal, now)
        token = self.tokens.issue(principal, now + TOKEN_LIFE)
        return Granted(access_token=token, expires_in=int(TOKEN_LIFE.total_seconds()))

    def _remember(self, principal: Principal, now: datetime) -> None:
        if principal.role is Role.AGENT:
            data = self.tenants.of(principal.tenant)
            remember_cluster(data, principal.subject, principal.name, now)

    def authorize(self, token: str, now: datetime) -> Principal | None:
        """Return who holds a token, if they are let in still: it is looked up, not believed."""
        named = self.tokens.read(token, now)
        if named is None:
            return None
        subject, kid = named
        principal = self.members.get(subject)
        return principal if principal is not None and principal.kid == kid else None


def refuse_unsigned(
    principal: Principal, request: SignedRequest, verify: Verify, now: datetime
) -> None:
    """Let only what an agent signed lately pass; a person's token stands for itself.

    Raises:
        Unproven: it is not signed, by another key, or was signed too long ago.
    """
    if principal.role is Role.PERSON:
        return
    if not _is_number(request.timestamp):
        raise Unproven("the request has no timestamp")
    timestamp = int(request.timestamp)
    message = request_message(request.method, request.path, request.query, timestamp, request.body)
    if not verify(principal.public_key, request.signature, message):
        raise Unproven("the request is not signed by the key of its token")
    if abs(now.timestamp() - timestamp) > CLOCK_SKEW.total_seconds():
        raise Unproven(f"the request was signed at {timestamp}; here it is {int(now.timestamp())}")


def refuse_others(principal: Principal, cluster: str, role: Role) -> None:
    """Let an agent pass to its own cluster, and nobody to what another role does.

    Whether a person's tenant has the cluster shows where it is looked up, among the tenant's own.

    Raises:
        Forbidden: it may not.
    """
    if principal.role is not role:
        raise Forbidden(
            f"this is for the role {role}, and the token is of the role {principal.role}"
        )
    if role is Role.AGENT and principal.subject != cluster:
        raise Forbidden(f"the token is of another cluster than {cluster[:64]}")


def digest_of(join_token: str) -> str:
    """Return what is stored of a join token. It has 256 random bits, so a plain hash will do."""
    return sha256(join_token.encode()).hexdigest()


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 16  # noqa: PLR2004 - as 2**53
