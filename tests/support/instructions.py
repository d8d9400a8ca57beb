"""A signer of instructions, and a service that hands them to one executor."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from plimsoll.domain.errors import PlimsollError
from plimsoll_service.wire.instructions import (
    Instruction,
    Instructions,
    Result,
    Results,
    SignedInstruction,
    Successor,
    sign,
)


class SeededSigner:
    """Signs with a key that is the same in every run."""

    def __init__(self, seed: int = 1, key_id: str = "k-1") -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
        self.key_id = key_id
        self.successor: Successor | None = None

    def sign(self, message: bytes) -> bytes:
        return self._key.sign(message)

    @property
    def pinned(self) -> str:
        """As the owner's policy names it."""
        public = self._key.public_key().public_bytes_raw()
        return f"{self.key_id}:{b64encode(public).decode()}"


@dataclass
class HandingOut:
    """Hands out the same instructions until they are taken off, as the service does."""

    signer: SeededSigner = field(default_factory=SeededSigner)
    waiting: list[SignedInstruction] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    deaf: PlimsollError | None = None
    """What a report is answered with."""

    def ask(self, instruction: Instruction) -> None:
        self.waiting.append(sign(instruction, self.signer))

    def instructions(self) -> Instructions:
        return Instructions(instructions=tuple(self.waiting))

    def report(self, results: Results) -> None:
        if self.deaf is not None:
            raise self.deaf
        self.results += results.results
