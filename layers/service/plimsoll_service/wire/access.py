"""How an agent proves who it is: enrolment, short-lived tokens, and the signature of each request.

The private key is made in the cluster and never leaves it. What is signed names its purpose, so that
no signature of one kind of message passes for one of another.
"""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256
from typing import Annotated, Final

from msgspec import Meta, Struct

from plimsoll_service.wire.documents import Count, Text, Words, encode
from plimsoll_service.wire.names import Uid

ASSERTION_LIFE: Final = timedelta(seconds=60)
"""An assertion that claims to be good for longer is refused."""
CLOCK_SKEW: Final = timedelta(seconds=300)
"""A request that was signed longer ago, or later than now, is refused. Within this time it may be sent again:
each request is carried out again with the same result."""

TIMESTAMP: Final = "X-Plimsoll-Timestamp"
SIGNATURE: Final = "X-Plimsoll-Signature"
"""Header: Ed25519 over `request_message`, in base64."""

_ENROLMENT: Final = b"plimsoll-enrolment-v1\n"
_ASSERTION: Final = b"plimsoll-assertion-v1\n"
_REQUEST: Final = b"plimsoll-request-v2\n"

type PublicKey = Annotated[bytes, Meta(min_length=32, max_length=32)]
type Signature = Annotated[bytes, Meta(min_length=64, max_length=64)]


class Part(Struct, frozen=True):
    """Part of a message."""


class Enrolment(Part, frozen=True, kw_only=True):
    """The enrolment of an agent or person, sent once with the join token."""

    join_token: Text
    public_key: PublicKey
    """Ed25519; in JSON, as all bytes here, base64."""
    cluster_uid: Uid
    """The uid of the namespace kube-system, which names a cluster for as long as it lives."""
    signature: Signature
    """By the private key, over `enrolment_message`: nobody enrols a key that is not theirs."""


class InstructionKey(Part, frozen=True, kw_only=True):
    """A public key by which instructions are signed."""

    key_id: Text
    public_key: PublicKey


class Enrolled(Part, frozen=True, kw_only=True):
    """The answer to an enrolment. Enrolling the same key again gives the same answer."""

    cluster_id: Text
    kid: Text
    """How the service names the key."""
    instruction_keys: Annotated[tuple[InstructionKey, ...], Meta(max_length=8)] = ()
    """Those that an executor pins, once its join token tells of them: it follows no others but their
    successors, until it is enrolled again."""


class Assertion(Part, frozen=True, kw_only=True):
    """What an agent signs for a token."""

    cluster_id: Text
    kid: Text
    iat: Count
    """Seconds since 1970."""
    exp: Count
    jti: Text
    """New each time: the service takes none twice."""


class TokenRequest(Part, frozen=True, kw_only=True):
    """An assertion on its way."""

    payload: bytes
    """The assertion as canonical JSON."""
    signature: Signature
    """Over `assertion_message`."""


class Granted(Part, frozen=True, kw_only=True):
    """An access token."""

    access_token: Annotated[str, Meta(min_length=1, max_length=4096)]
    expires_in: Annotated[int, Meta(ge=1, le=3600)]
    """Seconds."""


class Accepted(Part, frozen=True, kw_only=True):
    """The answer to a snapshot: 202. It is kept from then on, whatever becomes of its sender."""

    accepted: Count
    """Its sequence."""
    instructions_pending: bool = False
    next_poll_s: Annotated[int, Meta(ge=1, le=3600)] = 60
    """When the next snapshot is wanted."""
    left_out: Count = 0
    """Objects of it that do not count, because their names are invalid."""
    resync: bool = False
    """The service lacks the base of this delta: the next snapshot has to be a full one."""


class Problem(Part, frozen=True, kw_only=True):
    """An error, as `application/problem+json` (RFC 9457)."""

    type: str = "about:blank"
    title: Words = ""
    status: Count = 0
    detail: Words = ""
    instance: Words = ""


def agents_join_token(secret: str, instruction_key: bytes) -> str:
    """Return the join token of an agent: it tells which key signs instructions, past the service's API."""
    return f"{secret}.{sha256(instruction_key).hexdigest()}"


def tells_of(join_token: str, instruction_key: bytes) -> bool:
    """Whether a join token was made for agents that pin a key."""
    return join_token.rpartition(".")[2] == sha256(instruction_key).hexdigest()


def enrolment_message(join_token: str, public_key: bytes, cluster_uid: str) -> bytes:
    """Return what an agent signs to enrol."""
    parts = (join_token.encode(), public_key.hex().encode(), cluster_uid.encode())
    return _ENROLMENT + b"\n".join(parts)


def assertion_message(payload: bytes) -> bytes:
    """Return what an agent signs for a token."""
    return _ASSERTION + payload


def request_message(method: str, path: str, query: str, timestamp: int, body: bytes) -> bytes:
    """Return what an agent signs of each request.

    Args:
        method: In capitals.
        path: Without the stage of the API, as in `/v1/token`.
        query: As it was sent, without `?`; empty where there is none.
        timestamp: Seconds since 1970, by the agent's clock.
        body: As it was sent, that is compressed.
    """
    parts = (method, path, query, str(timestamp), sha256(body).hexdigest())
    return _REQUEST + "\n".join(parts).encode()


def payload_of(assertion: Assertion) -> bytes:
    """Return an assertion as it is signed."""
    return encode(assertion)
