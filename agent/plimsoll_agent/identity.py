"""The agent's key: made in the cluster, kept in one Secret there, and never sent anywhere.

The Secret holds the join token before the first start. After it, it holds the key, what the service
calls cluster and key, and the keys by which instructions are signed: they are pinned then, and no
answer of the service changes them. The key is stored before it is enrolled: an agent that dies in
between enrols the same key again.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import KUBE_SYSTEM, NAMESPACE
from plimsoll_agent.calls import GET_CLUSTER, GET_KEY, KEY, PATCH_KEY
from plimsoll_service.wire.access import Enrolled
from plimsoll_service.wire.documents import decode, encode

_PRIVATE: Final = "private-key"
_JOIN: Final = "join-token"
_ENROLLED: Final = "enrolled"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who an agent is."""

    key: Ed25519PrivateKey
    join_token: str | None = None
    enrolled: Enrolled | None = None
    """What the service calls cluster and key, and the keys that are pinned; None before."""

    @property
    def public_key(self) -> bytes:
        """The public half, as it is enrolled."""
        return self.key.public_key().public_bytes_raw()


class SecretIdentity:
    """Keeps an identity in the Secret `plimsoll-agent-key`."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def load(self) -> Identity:
        """Return the identity; a key is made and stored where there is none.

        Raises:
            PlimsollError: the Secret is missing, or cannot be read or written.
        """
        secret = self._requests.send(GET_KEY, namespace=NAMESPACE, name=KEY)
        data = secret.get("data") or {}
        raw = _decoded(data, _PRIVATE)
        if raw is None:
            key = Ed25519PrivateKey.generate()
            version = secret["metadata"]["resourceVersion"]  # two agents must not make two keys
            self._patch({_PRIVATE: key.private_bytes_raw()}, version)
        else:
            key = _key(raw)
        join, enrolled = _decoded(data, _JOIN), _decoded(data, _ENROLLED)
        return Identity(
            key,
            None if join is None else join.decode(errors="replace").strip(),
            None if enrolled is None else decode(enrolled, Enrolled),
        )

    def enrolled(self, answer: Enrolled) -> None:
        """Store what the service answered; the join token has served its purpose."""
        self._patch({_ENROLLED: encode(answer), _JOIN: None})

    def cluster_uid(self) -> str:
        """Return what names this cluster for as long as it lives."""
        found = self._requests.send(GET_CLUSTER, name=KUBE_SYSTEM)
        return str(found["metadata"]["uid"])

    def _patch(self, values: Mapping[str, bytes | None], version: str | None = None) -> None:
        data = {k: None if v is None else b64encode(v).decode() for k, v in values.items()}
        precondition = {} if version is None else {"metadata": {"resourceVersion": version}}
        self._requests.send(
            PATCH_KEY, namespace=NAMESPACE, name=KEY, body={"data": data} | precondition
        )


class PinnedKey:
    """The public key of who signs instructions. Implements the wire's `Verifier`."""

    def __init__(self, raw: bytes) -> None:
        self._key = Ed25519PublicKey.from_public_bytes(raw)

    def verify(self, signature: bytes, message: bytes) -> bool:
        """Whether that key made the signature."""
        try:
            self._key.verify(signature, message)
        except InvalidSignature:
            return False
        return True


def _key(raw: bytes) -> Ed25519PrivateKey:
    try:
        return Ed25519PrivateKey.from_private_bytes(raw)
    except ValueError as error:
        raise BadInput(f"Secret {KEY}: {_PRIVATE} is no Ed25519 key: delete that entry") from error


def _decoded(data: Mapping[str, str], name: str) -> bytes | None:
    try:
        return b64decode(data[name], validate=True) or None if name in data else None
    except ValueError as error:
        raise BadInput(f"Secret {KEY}: {name} is not base64") from error
