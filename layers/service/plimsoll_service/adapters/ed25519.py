"""Signatures by Ed25519 (RFC 8032)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


def is_signed(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether a signature of a message is by a public key."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):  # a ValueError: no point of the curve
        return False
    return True


@dataclass(frozen=True, slots=True)
class LocalSigner:
    """Signs instructions with a key in memory: for rigs. In production the key never leaves KMS."""

    key_id: str
    _key: Ed25519PrivateKey

    @classmethod
    def of(cls, key_id: str, seed: bytes) -> Self:
        """Return the signer of the private key that 32 bytes are."""
        return cls(key_id, Ed25519PrivateKey.from_private_bytes(seed))

    def public_key(self) -> bytes:
        """Return the 32 bytes of the public key, which agents pin."""
        return self._key.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        """Return the 64 bytes of a signature."""
        return self._key.sign(message)
