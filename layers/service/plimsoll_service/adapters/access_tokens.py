"""Access tokens: JSON Web Tokens under a key that only the API and its authorizer can read.

A token says who came, and nothing of what they may: that is looked up each time, so that nobody who
was revoked goes on until a token expires.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

from plimsoll_service.domain.access import Principal
from plimsoll_service.services.ports import TokenKeys

_ALGORITHM: Final = "HS256"
_ISSUER: Final = "plimsoll"
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
        return jwt.encode({"alg": _ALGORITHM}, claims, key, algorithms=[_ALGORITHM])

    def read(self, token: str, now: datetime) -> tuple[str, str] | None:
        """Return subject and key of a token; None: no key of ours signed it, or its time is over."""
        if len(token) > _LONGEST:
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
