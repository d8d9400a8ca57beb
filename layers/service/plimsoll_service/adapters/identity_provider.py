"""The issuer, over HTTP: discovery, keys, token and device endpoints.

Keys are kept for an hour. A token that none of them signed has them read once more: issuers rotate keys.
https://openid.net/specs/openid-connect-discovery-1_0.html https://www.rfc-editor.org/rfc/rfc8628
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote_plus, urlencode, urlsplit

import msgspec
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, import_key
from urllib3 import PoolManager, Retry, Timeout
from urllib3.exceptions import HTTPError

from plimsoll.domain.errors import MissingRights, Temporary, Throttled
from plimsoll_service.domain.errors import Unproven
from plimsoll_service.services.ports import Clock
from plimsoll_service.services.relying_party import Client, Device, Endpoints

ALGORITHMS: Final = ("RS256", "PS256", "ES256", "EdDSA", "Ed25519")
"""Of ID tokens. None is `none`, and none is by a secret: a public key must never pass for one."""
KEPT: Final = timedelta(hours=1)
"""Discovery document and keys."""
_KINDS_OF_KEYS: Final = {"RSA", "EC", "OKP"}
_MOST_BYTES: Final = 2**20
_MOST_KEYS: Final = 100
_TIMEOUT: Final = Timeout(connect=3, read=5)
_LOOPBACK: Final = {"127.0.0.1", "::1", "localhost"}
_OK: Final = 200
_SERVER_ERROR: Final = 500
_TOO_MANY: Final = 429
_INTERVAL: Final = 5
"""Seconds between two questions of the device flow, where the issuer tells none."""


@dataclass(slots=True, kw_only=True)
class OidcProvider:
    """One issuer."""

    client: Client
    secret: Callable[[], str]
    """Returns the secret of the client; empty: a public client has none."""
    clock: Clock
    _pool: PoolManager = field(
        default_factory=lambda: PoolManager(timeout=_TIMEOUT, retries=Retry(0, redirect=False))
    )
    _document: tuple[Mapping[str, Any], datetime] | None = None
    _keys: tuple[KeySet, datetime] | None = None

    def endpoints(self) -> Endpoints:
        """Return its endpoints.

        Raises:
            Temporary: it does not answer, or not as an issuer.
        """
        told = self._told()
        device = told.get("device_authorization_endpoint")
        return Endpoints(
            authorization=self._url(told, "authorization_endpoint"),
            token=self._url(told, "token_endpoint"),
            device=None if device is None else self._url(told, "device_authorization_endpoint"),
            names_itself=told.get("authorization_response_iss_parameter_supported") is True,
        )

    def redeem(self, form: Mapping[str, str]) -> str:
        """Return the ID token that it gives for a form of its token endpoint.

        Raises:
            Unproven: it refuses what the form holds.
            Throttled: the person did not confirm a device code yet.
            MissingRights: it refuses the client.
            Temporary: it does not answer.
        """
        status, answer = self._posted(self.endpoints().token, form)
        token = answer.get("id_token")
        if status == _OK and isinstance(token, str):
            return token
        raise _refusal(status, answer)

    def authorize_device(self, form: Mapping[str, str]) -> Device:
        """Begin the device flow.

        Raises:
            MissingRights: it refuses the client.
            Temporary: it does not answer, or not as it should.
        """
        endpoint = self._url(self._told(), "device_authorization_endpoint")
        status, answer = self._posted(endpoint, form)
        if status != _OK:
            raise _refusal(status, answer)
        try:
            return msgspec.convert(
                {
                    "interval": _INTERVAL,
                    **answer,
                    "verification_uri": answer.get("verification_uri_complete")
                    or answer.get("verification_uri"),
                },
                Device,
            )
        except msgspec.ValidationError as error:
            raise Temporary(f"the issuer's answer to a device is none: {error}") from error

    def claims(self, id_token: str) -> Mapping[str, Any]:
        """Return the claims of an ID token that one of its keys signed.

        Raises:
            Unproven: none did, or by an algorithm that is not for ID tokens.
            Temporary: its keys cannot be read.
        """
        last: Exception | None = None
        for again in (False, True):
            try:
                return jwt.decode(
                    id_token, self._key_set(again=again), algorithms=list(ALGORITHMS)
                ).claims
            except (JoseError, ValueError) as error:
                last = error
        raise Unproven(f"no key of the issuer signed the ID token: {last}") from last

    def _told(self) -> Mapping[str, Any]:
        now = self.clock.now()
        if self._document is None or now - self._document[1] >= KEPT:
            url = f"{self.client.issuer.rstrip('/')}/.well-known/openid-configuration"
            told = self._got(_checked(url))
            # Else any issuer could send people to the endpoints of another.
            if told.get("issuer") != self.client.issuer:
                raise Temporary(
                    f"{url} is the document of {str(told.get('issuer'))[:200]!r}, and not of "
                    f"{self.client.issuer!r}: the parameter OidcIssuer must be equal to its issuer"
                )
            self._document = told, now
        return self._document[0]

    def _key_set(self, *, again: bool) -> KeySet:
        now = self.clock.now()
        if self._keys is None or again or now - self._keys[1] >= KEPT:
            told = self._got(self._url(self._told(), "jwks_uri")).get("keys")
            keys = told[:_MOST_KEYS] if isinstance(told, list) else []
            self._keys = KeySet(_usable(keys)), now
        return self._keys[0]

    def _url(self, told: Mapping[str, Any], name: str) -> str:
        return _checked(str(told.get(name)))

    def _got(self, url: str) -> Mapping[str, Any]:
        status, answer = self._asked("GET", url, None, {})
        if status != _OK:
            raise Temporary(f"{url} answers {status}")
        return answer

    def _posted(self, url: str, form: Mapping[str, str]) -> tuple[int, Mapping[str, Any]]:
        secret = self.secret()
        said = {"client_id": self.client.client_id, **form}
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if secret and self._takes_basic():
            # https://www.rfc-editor.org/rfc/rfc6749#section-2.3.1
            pair = f"{quote_plus(self.client.client_id)}:{quote_plus(secret)}"
            headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        elif secret:
            said["client_secret"] = secret
        return self._asked("POST", url, urlencode(said).encode(), headers)

    def _takes_basic(self) -> bool:
        ways = self._told().get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        return "client_secret_basic" in ways

    def _asked(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, Any]]:
        try:
            answer = self._pool.request(
                method,
                url,
                body=body,
                headers={"Accept": "application/json", **headers},
                preload_content=False,
            )
            data = answer.read(_MOST_BYTES + 1)
            answer.release_conn()
        except HTTPError as error:
            raise Temporary(f"the issuer does not answer at {url}") from error
        try:
            read = msgspec.json.decode(data) if len(data) <= _MOST_BYTES else None
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            read = None
        if not isinstance(read, dict):
            raise Temporary(f"the issuer answers {answer.status} at {url}, and no JSON object")
        return answer.status, read


def _usable(keys: Sequence[Any]) -> list[Any]:
    """Return the keys that may sign ID tokens; what cannot be read is for somebody else."""
    found = []
    for key in keys:
        if not isinstance(key, dict) or key.get("use", "sig") != "sig":
            continue
        if key.get("kty") not in _KINDS_OF_KEYS:
            continue
        try:
            found.append(import_key(key))
        except (JoseError, ValueError):
            continue
    return found


def _refusal(
    status: int, answer: Mapping[str, Any]
) -> Unproven | Throttled | MissingRights | Temporary:
    error = str(answer.get("error", ""))[:64]
    match error:
        case "authorization_pending":
            return Throttled("nobody confirmed the code yet", retry_after=_INTERVAL)
        case "slow_down":
            return Throttled("the issuer asks for patience", retry_after=2 * _INTERVAL)
        case "invalid_client" | "unauthorized_client" | "unsupported_grant_type" | "invalid_scope":
            return MissingRights(f"the issuer refuses this client: {error}")
        case _ if status >= _SERVER_ERROR or status == _TOO_MANY:
            return Temporary(f"the issuer answers {status}")
        case _:
            return Unproven(f"the issuer refuses: {error or status}. Log in again")


def _checked(url: str) -> str:
    """Return an address of the issuer.

    Raises:
        Temporary: anybody between could read what is sent there.
    """
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise Temporary(f"{url[:200]!r} of the issuer must be https; http is for loopback only")
    return url
