"""Instructions: what the service asks the executor of one cluster to do, signed, and what became of it.

What is signed are the bytes that travel, not a document that both sides would have to write alike:
the executor checks the signature before it decodes anything. The message that is signed names its
purpose, so that no signature of another kind of document passes for one of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from hashlib import sha256
from typing import Annotated, Final, Literal, Protocol

from msgspec import Meta, Struct

from plimsoll_service.wire.documents import Count, Malformed, Text, Time, Words, decode, encode
from plimsoll_service.wire.names import (
    KindName,
    LabelKey,
    LabelValue,
    Namespace,
    ObjectName,
    ProviderId,
    Uid,
)

PURPOSE: Final = b"plimsoll-instruction-v1\n"
_SUCCESSION: Final = b"plimsoll-successor-v1\n"
LONGEST_LIFE: Final = timedelta(hours=1)
"""An instruction that could be carried out later than this after it was issued is refused."""

type Number = Annotated[int, Meta(ge=1, le=2**53)]
type Labels = Annotated[dict[LabelKey, LabelValue | None], Meta(max_length=16)]
"""Label -> value; None: it is not there, or is to be taken off."""


class Part(Struct, frozen=True):
    """Part of an instruction."""


class Target(Part, frozen=True, kw_only=True):
    """The Node that an instruction is about, by uid: another Node of that name is not meant."""

    name: ObjectName
    uid: Uid
    provider_id: ProviderId = ""


class StandingWorkload(Part, frozen=True, kw_only=True):
    """A workload with pods on the node, as it was when the plan was made."""

    kind: KindName
    namespace: Namespace
    name: ObjectName
    uid: Uid
    replicas: Count
    """It has at least so many: with fewer, fewer may go."""


class Preconditions(Part, frozen=True, kw_only=True):
    """What must hold when the instruction is carried out, besides the target's uid and provider id."""

    labels: Labels = {}
    """Of the Node."""
    workloads: Annotated[tuple[StandingWorkload, ...], Meta(max_length=256)] = ()
    """Nothing else has pods on the node, but for DaemonSets and mirror pods."""
    most_pods: Count = 0
    """No more pods than this have to leave."""
    destinations: Annotated[tuple[Uid, ...], Meta(max_length=5000)] = ()
    """Uids of the Nodes on which the plan counts: all are Ready and not cordoned."""


class Action(Part, frozen=True, kw_only=True):
    """One step of the plan, as a dry run prints it."""

    verb: Literal["cordon", "release", "evict", "label"]
    target: Text
    """Such as `Node ip-10-0-1-2` or `Pod shop/web-5d9f`."""
    reason: Words


class Plan(Part, frozen=True, kw_only=True):
    """What the service expects the executor to do, and why.

    It binds nobody: the executor plans anew from what it sees, and may do less.
    """

    reason: Words
    actions: Annotated[tuple[Action, ...], Meta(max_length=1024)] = ()


class Instruction(Part, frozen=True, kw_only=True):
    """What is asked of the executor of one cluster."""

    id: Text
    """Of the recommendation that somebody accepted, and so the same when it is issued again."""
    cluster_id: Text
    number: Number
    """Above that of every earlier instruction to this cluster; an executor takes none twice."""
    issued_at: Time
    expires_at: Time
    kind: Literal["consolidate-node", "label-node"]
    target: Target
    preconditions: Preconditions
    labels: Labels = {}
    """What label-node writes."""
    plan: Plan


class Successor(Part, frozen=True, kw_only=True):
    """The key that signs from now on, signed by the former one."""

    key_id: Text
    public_key: Annotated[bytes, Meta(min_length=32, max_length=32)]
    former_id: Text
    signature: Annotated[bytes, Meta(min_length=64, max_length=64)]
    """Over `successor_message`."""


class SignedInstruction(Part, frozen=True, kw_only=True):
    """An instruction on its way."""

    payload: bytes
    """The instruction as canonical JSON; in JSON itself this is base64."""
    key_id: Text
    signature: Annotated[bytes, Meta(min_length=64, max_length=64)]
    """Ed25519."""
    successor: Successor | None = None
    """How whoever pinned the former key knows this one; None: the key was not rotated."""


class Instructions(Part, frozen=True, kw_only=True):
    """The answer to a poll: in the order of their numbers."""

    instructions: Annotated[tuple[SignedInstruction, ...], Meta(max_length=100)] = ()


type Outcome = Literal["done", "refused", "failed", "would-do"]


class Result(Part, frozen=True, kw_only=True):
    """The result of an instruction."""

    id: Text
    number: Number
    outcome: Outcome
    """`would-do`: the executor is read-only."""
    reason: Words
    at: Time


class Results(Part, frozen=True, kw_only=True):
    """Results that an executor reports. To report one again changes nothing."""

    results: Annotated[tuple[Result, ...], Meta(min_length=1, max_length=100)]


class Signer(Protocol):
    """Signs with one Ed25519 key."""

    @property
    def key_id(self) -> str:
        """How executors name the public key."""
        ...

    @property
    def successor(self) -> Successor | None:
        """What the former key says of this one; None: there is no former one."""
        ...

    def sign(self, message: bytes) -> bytes:
        """Return the 64 bytes of a signature."""
        ...


class Verifier(Protocol):
    """Knows one Ed25519 public key."""

    def verify(self, signature: bytes, message: bytes) -> bool:
        """Whether that key made the signature."""
        ...


class Untrusted(Malformed):
    """The signature is missing, wrong, or by a key that is not pinned."""


def sign(instruction: Instruction, signer: Signer) -> SignedInstruction:
    """Return a signed instruction.

    Raises:
        Unwritable: its executor could not read it.
    """
    payload = encode(instruction)
    signature = signer.sign(message_of(payload))
    return SignedInstruction(
        payload=payload, key_id=signer.key_id, signature=signature, successor=signer.successor
    )


def succeed(former: Signer, key_id: str, public_key: bytes) -> Successor:
    """Return the key that signs from now on, signed by the former one."""
    return Successor(
        key_id=key_id,
        public_key=public_key,
        former_id=former.key_id,
        signature=former.sign(successor_message(key_id, public_key)),
    )


def verify(signed: SignedInstruction, pinned: Mapping[str, Verifier]) -> Instruction:
    """Return the instruction, once its signature is known to be by a pinned key.

    Cluster, number, expiry and preconditions are the executor's to check.

    Args:
        signed: what came.
        pinned: key id -> the public key that was pinned when the agent was enrolled.

    Raises:
        Untrusted: it is not.
        Malformed: it is, and this executor cannot read it; or its life is longer than any may be.
    """
    verifier = pinned.get(signed.key_id)
    if verifier is None:
        raise Untrusted(f"the key {signed.key_id[:64]!r} is not pinned")
    if not verifier.verify(signed.signature, message_of(signed.payload)):
        raise Untrusted(f"the signature is not by the key {signed.key_id[:64]!r}")
    found = decode(signed.payload, Instruction)
    if not found.issued_at < found.expires_at <= found.issued_at + LONGEST_LIFE:
        raise Malformed(f"lives from {found.issued_at} to {found.expires_at} - at `$.expires_at`")
    return found


def successor_message(key_id: str, public_key: bytes) -> bytes:
    """Return what a key signs of its successor."""
    return _SUCCESSION + b"\n".join((public_key.hex().encode(), key_id.encode()))


def message_of(payload: bytes) -> bytes:
    """Return what is signed: short, whatever the payload is. KMS signs no more than 4096 bytes.

    https://docs.aws.amazon.com/kms/latest/APIReference/API_Sign.html
    """
    return PURPOSE + sha256(payload).hexdigest().encode()
