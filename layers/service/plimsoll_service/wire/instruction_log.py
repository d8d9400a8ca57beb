"""What people read of the instructions that were signed for a cluster, and how they check one offline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict

from plimsoll_service.wire.documents import Malformed, Text, Time, Words
from plimsoll_service.wire.instructions import (
    Instruction,
    Number,
    Outcome,
    SignedInstruction,
    Untrusted,
    Verifier,
    successor_message,
    verify,
)
from plimsoll_service.wire.names import ObjectName
from plimsoll_service.wire.pages import Page


class InstructionRow(Struct, frozen=True, kw_only=True):
    """An instruction that was signed, and what became of it."""

    number: Number
    id: Text
    """Of the recommendation that it was made of."""
    kind: Text
    target: ObjectName
    """The name of the Node."""
    issued_at: Time
    expires_at: Time
    key_id: Text
    digest: Text
    """SHA-256 of the signed bytes, in hex."""
    outcome: Outcome | Literal["waiting", "unanswered"]
    """`unanswered`: it expired, and its executor has reported nothing."""
    reason: Words = ""
    reported_at: datetime | None = None


class SignedRow(InstructionRow, frozen=True, kw_only=True):
    """The same with the bytes that were signed."""

    signed: SignedInstruction


class InstructionRows(Page, frozen=True, kw_only=True):
    """A page of the instructions of a cluster, newest first."""

    items: tuple[InstructionRow, ...]


def digest_of(signed: SignedInstruction) -> str:
    """Return the SHA-256 of the signed bytes, in hex."""
    return sha256(signed.payload).hexdigest()


def told(instruction: Instruction, signed: SignedInstruction) -> Mapping[str, Any]:
    """Return the fields of a row that follow from what was signed."""
    return {
        "number": instruction.number,
        "id": instruction.id,
        "kind": instruction.kind,
        "target": instruction.target.name,
        "issued_at": instruction.issued_at,
        "expires_at": instruction.expires_at,
        "key_id": signed.key_id,
        "digest": digest_of(signed),
    }


def faults(
    row: SignedRow, pinned: Mapping[str, Verifier], verifier: Callable[[bytes], Verifier]
) -> Iterator[str]:
    """Yield what is wrong with a row, checked against public keys: nothing, if it is as it was signed.

    Args:
        row: as the service returned it, or as it lies in a file.
        pinned: key id -> the public key, from a source that the service cannot change.
        verifier: makes one of a public key: a pinned key may have signed its successor.
    """
    if row.digest != digest_of(row.signed):
        yield f"the digest is of other bytes: the signed ones have {digest_of(row.signed)}"
    try:
        instruction = verify(row.signed, {**_followed(row.signed, pinned, verifier), **pinned})
    except Untrusted as error:
        yield f"{error}; given are {', '.join(sorted(pinned)) or 'no keys'}"
        return
    except Malformed as error:
        yield f"the signature is right, and the signed bytes are no instruction: {error}"
        return
    said = asdict(row)
    for name, value in told(instruction, row.signed).items():
        if said[name] != value and name != "digest":
            yield f"{name} is {said[name]}, and {value} was signed"


def _followed(
    signed: SignedInstruction, pinned: Mapping[str, Verifier], verifier: Callable[[bytes], Verifier]
) -> Mapping[str, Verifier]:
    """Return the key that a pinned one signed as its successor."""
    named = signed.successor
    former = pinned.get(named.former_id) if named is not None else None
    if named is None or former is None:
        return {}
    message = successor_message(named.key_id, named.public_key)
    if not former.verify(named.signature, message):
        return {}
    return {named.key_id: verifier(named.public_key)}
