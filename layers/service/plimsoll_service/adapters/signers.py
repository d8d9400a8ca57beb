"""Signatures by Ed25519 (RFC 8032): checked, and made by a key in KMS, or in memory on rigs.

A key of KMS cannot be read, and each use stands in CloudTrail.
https://docs.aws.amazon.com/kms/latest/developerguide/symm-asymm-choose-key-spec.html
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

from plimsoll.adapters.aws_errors import translated
from plimsoll.domain.errors import BadInput
from plimsoll_service.adapters.access_tokens import SecretTokenKeys
from plimsoll_service.adapters.aws import ServiceAws
from plimsoll_service.services.ports import Clock
from plimsoll_service.wire.instructions import Successor

ALGORITHM: Final = "ED25519_SHA_512"
"""Plain Ed25519. KMS takes up to 4096 bytes for it, and calls such a message RAW."""


def is_signed(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether a signature of a message is by a public key."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):  # a ValueError: no point of the curve
        return False
    return True


@dataclass(frozen=True, slots=True)
class KmsSigner:
    """Signs instructions with a key of KMS (key spec ECC_NIST_EDWARDS25519)."""

    client: Any
    """Of KMS."""
    key_id: str
    """Its ARN, or an alias; agents know the public key by this name."""
    successor: Successor | None = None
    """What the former key says of this one; None: there is no former one."""

    def public_key(self) -> bytes:
        """Return the 32 bytes of the public key, which agents pin.

        Raises:
            BadInput: it is a key of another kind.
        """
        with translated(f"read the public key of {self.key_id}"):
            answer = self.client.get_public_key(KeyId=self.key_id)
        key = load_der_public_key(answer["PublicKey"])
        if not isinstance(key, Ed25519PublicKey):
            raise BadInput(f"{self.key_id} is no Ed25519 key: make one of ECC_NIST_EDWARDS25519")
        return key.public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        """Return the 64 bytes of a signature."""
        with translated(f"sign an instruction with {self.key_id}"):
            answer = self.client.sign(
                KeyId=self.key_id,
                Message=message,
                MessageType="RAW",
                SigningAlgorithm=ALGORITHM,
            )
        signature: bytes = answer["Signature"]
        return signature


@dataclass(frozen=True, slots=True)
class LocalSigner:
    """Signs instructions with a key in memory: for rigs. In production the key never leaves KMS."""

    key_id: str
    _key: Ed25519PrivateKey
    successor: Successor | None = None
    """What the former key says of this one; None: there is no former one."""

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


def signer_of(aws: ServiceAws, key: str, clock: Clock) -> KmsSigner | LocalSigner:
    """Return the signer by a key of KMS; on a rig, which has none, by a secret. Both are named by ARN."""
    if ":kms:" in key:
        return KmsSigner(aws.kms, key)
    return LocalSigner.of("rig", SecretTokenKeys(aws=aws, secret=key, clock=clock).newest())
