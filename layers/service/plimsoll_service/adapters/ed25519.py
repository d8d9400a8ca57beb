"""Signatures by Ed25519 (RFC 8032)."""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def is_signed(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether a signature of a message is by a public key."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):  # a ValueError: no point of the curve
        return False
    return True
