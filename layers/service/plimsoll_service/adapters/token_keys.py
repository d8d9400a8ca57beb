"""The keys of access tokens, in Secrets Manager: a rotation leaves the former one good for reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.domain.errors import BadInput, NotFound
from plimsoll_service.adapters.aws import ServiceAws
from plimsoll_service.services.ports import Clock

KEPT: Final = timedelta(minutes=1)
_SHORTEST: Final = 32
"""Bytes; as long as what HS256 makes of it."""


@dataclass(slots=True, kw_only=True)
class SecretTokenKeys:
    """The keys in one secret."""

    aws: ServiceAws
    secret: str
    clock: Clock
    _read: tuple[Sequence[bytes], datetime] | None = field(default=None)

    def newest(self) -> bytes:
        """Return the key that signs."""
        return self.all()[0]

    def all(self) -> Sequence[bytes]:
        """Return the keys by which a token may be signed, the newest first."""
        now = self.clock.now()
        if self._read is None or now - self._read[1] >= KEPT:
            self._read = self._fetched(), now
        return self._read[0]

    def _fetched(self) -> Sequence[bytes]:
        found = [self._version("AWSCURRENT")]
        try:
            found.append(self._version("AWSPREVIOUS"))
        except NotFound:  # it was never rotated
            return found
        return found

    def _version(self, stage: str) -> bytes:
        with translated("read the key of access tokens"):
            answer = self.aws.secretsmanager.get_secret_value(
                SecretId=self.secret, VersionStage=stage
            )
        key = answer["SecretString"].encode()
        if len(key) < _SHORTEST:
            raise BadInput(f"the key of access tokens has less than {_SHORTEST} bytes")
        return key
