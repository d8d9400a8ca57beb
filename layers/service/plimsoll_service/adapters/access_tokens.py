"""Access tokens: JSON Web Tokens under a key that only the API and its authorizer can read.

A token says who came, and nothing of what they may: that is looked up each time, so that nobody who
was revoked goes on until a token expires. The keys are in Secrets Manager: a rotation leaves the former one good
for reading.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

from plimsoll.adapters.aws_errors import translated
from plimsoll.domain.errors import BadInput, NotFound
from plimsoll_service.adapters.aws import ServiceAws
from plimsoll_service.domain.access import Principal
from plimsoll_service.services.ports import Clock, TokenKeys

KEYS_KEPT: Final = timedelta(minutes=1)
_SHORTEST: Final = 32
"""Bytes of a key; as long as what HS256 makes of it."""
_ALGORITHM: Final = "HS256"
_ISSUER: Final = "plimsoll"
_BEGIN: Final = f"{urlsafe_b64encode(b'{"typ":"JWT","alg":"HS256"}').decode()}."
"""All of ours begin so. No other header is even read: anybody may write one."""
_LONGEST: Final = 4096


@dataclass(frozen=True, slots=True)
class AccessTokens:
    """Issues and reads access tokens."""

    keys: TokenKeys

    def issue(self, principal: Principal, expires: datetime) -> str:
        """Return a token for a principal."""
        claims = {
            "iss": _ISSUER,
            "sub": principal.subject,
            "kid": principal.kid,
            "exp": int(expires.timestamp()),
        }
        key = OctKey.import_key(self.keys.newest())
        return jwt.encode({"typ": "JWT", "alg": _ALGORITHM}, claims, key, algorithms=[_ALGORITHM])

    def read(self, token: str, now: datetime) -> tuple[str, str] | None:
        """Return subject and key of a token; None: no key of ours signed it, or its time is over."""
        if len(token) > _LONGEST or not token.startswith(_BEGIN):
            return None
        for key in self.keys.all():
            try:
                claims = jwt.decode(token, OctKey.import_key(key), algorithms=[_ALGORITHM]).claims
            except (JoseError, ValueError):
                continue
            subject, kid, expires = claims.get("sub"), claims.get("kid"), claims.get("exp")
            if (
                claims.get("iss") == _ISSUER
                and isinstance(subject, str)
                and isinstance(kid, str)
                and isinstance(expires, int)
                and now.timestamp() < expires
            ):
                return subject, kid
        return None


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
        if self._read is None or now - self._read[1] >= KEYS_KEPT:
            self._read = self._fetched(), now
        return self._read[0]

    def _fetched(self) -> Sequence[bytes]:
        # A rotation moves both labels: tokens under the former key stay readable until they end.
        # https://docs.aws.amazon.com/secretsmanager/latest/userguide/whats-in-a-secret.html
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
