"""The cookies of the hosted console: a session, and a sign-in that has begun.

Their names begin with `__Host-`: a browser takes them of this host alone, over TLS, for every path.
https://developer.mozilla.org/docs/Web/HTTP/Reference/Headers/Set-Cookie#cookie_prefixes
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import msgspec

from plimsoll_service.services.relying_party import Attempt

SESSION: Final = "__Host-plimsoll"
SIGN_IN: Final = "__Host-plimsoll-sign-in"
SIGN_IN_LIFE: Final = timedelta(minutes=10)
MOST_COOKIE_CHARACTERS: Final = 4096
_WAY_BACK: Final = re.compile(r"(?!/)(?!.*//)(?!.*\.\.)[A-Za-z0-9._~%/?&=+-]{1,512}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A sign-in that this browser began."""

    attempt: Attempt
    tenant: str = ""
    """The one that the person named; empty: none."""
    to: str = ""
    """Where the person wanted to go, from the root of the console."""

    def text(self) -> str:
        """Return it as the value of a cookie."""
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode()

    @classmethod
    def read(cls, text: str) -> Begun | None:
        """Return what the value of a cookie holds; None: nothing of ours."""
        try:
            return msgspec.json.decode(base64.urlsafe_b64decode(text), type=cls)
        except (binascii.Error, ValueError):
            return None


def cookies_in(headers: Iterable[str]) -> Mapping[str, str]:
    """Return the cookies of a request. Of those of one name the first counts, as browsers send it."""
    found: dict[str, str] = {}
    for header in headers:
        for pair in header.split(";"):
            name, _, value = pair.strip().partition("=")
            if len(value) <= MOST_COOKIE_CHARACTERS:
                found.setdefault(name, value)
    return found


def cookie(name: str, value: str, life: timedelta) -> str:
    """Return the header that sets a cookie; a life of 0 deletes it."""
    # Lax: the issuer leads back from another site, and the cookie must come along.
    return (
        f"{name}={value}; Path=/; Secure; HttpOnly; SameSite=Lax; "
        f"Max-Age={round(life.total_seconds())}"
    )


def way_back(text: str) -> str:
    """Return where to go after the sign-in, from the root of the console; empty for what leads anywhere else."""
    return text if _WAY_BACK.fullmatch(text) else ""
