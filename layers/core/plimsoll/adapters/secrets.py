"""A token out of Secrets Manager: the bearer token of a cluster that is not EKS, or what signs canaries."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING, Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.domain.errors import BadInput

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws
    from plimsoll.services.ports import Clock

TOKEN_KEPT: Final = timedelta(minutes=5)
"""How long a token is used before the secret is read again: one that was rotated is taken over
within this time, or at the first 401."""


class SecretToken:
    """The token in one secret: its whole text, or the field `token` of a JSON object."""

    def __init__(self, aws: Aws, secret: str, clock: Clock) -> None:
        self._aws = aws
        self._secret = secret
        self._clock = clock
        self._lock = Lock()
        self._read: tuple[str, datetime] | None = None

    def get(self) -> str:
        """Return the token.

        Raises:
            NotFound: there is no such secret.
            BadInput: there is no token in it. The message never holds what it has.
        """
        with self._lock:
            now = self._clock.now()
            if self._read is None or now - self._read[1] >= TOKEN_KEPT:
                self._read = self._fetch(), now
            return self._read[0]

    def forget(self) -> None:
        """Read the secret again next time: the token was refused."""
        with self._lock:
            self._read = None

    def _fetch(self) -> str:
        with translated(f"read the secret {self._secret}"):
            answer = self._aws.secretsmanager.get_secret_value(SecretId=self._secret)
        text = answer.get("SecretString") or answer.get("SecretBinary", b"").decode(
            errors="replace"
        )
        token = text.strip()
        if token.startswith("{"):
            token = self._field(token)
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise BadInput(f"the secret {self._secret} holds no bearer token")
        return token

    def _field(self, text: str) -> str:
        try:
            token = json.loads(text).get("token")
        except ValueError:
            token = None
        if not isinstance(token, str):
            raise BadInput(f'the secret {self._secret} is JSON without a text field "token"')
        return token.strip()
