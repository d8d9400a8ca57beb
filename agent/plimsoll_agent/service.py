"""The service, for whoever has a key: enrols it, gets tokens, signs requests, reads answers.

A person who signed in by the issuer has a session instead: it is shown as it is, and nothing is signed.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import NoneType
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from uuid import uuid4

import msgspec
from urllib3 import PoolManager, ProxyManager, Retry, Timeout
from urllib3.exceptions import HTTPError

from plimsoll.domain.errors import (
    BadInput,
    MissingRights,
    PlimsollError,
    Refused,
    Temporary,
    Throttled,
)
from plimsoll.domain.fields import retry_after_of
from plimsoll.services.ports import Clock
from plimsoll_agent.identity import Identity
from plimsoll_service.wire import access
from plimsoll_service.wire.documents import MOST_BYTES, Malformed, Unwritable, decode, encode
from plimsoll_service.wire.instructions import Instructions, Results
from plimsoll_service.wire.taints import TaintedInstances

_TIMEOUT: Final = Timeout(connect=5, read=30)
_EARLY: Final = timedelta(seconds=30)
"""How long before its end a token is no longer used. It is renewed from its half life on."""
_LOOPBACK: Final = {"127.0.0.1", "::1", "localhost"}
_UNAUTHORIZED: Final = 401
_REFUSED: Final = 400
_SERVER_ERROR: Final = 500


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    data: bytes


def check_address(url: str) -> None:
    """Check where the service is said to be.

    Raises:
        BadInput: it could not be, or nobody may be asked there without TLS.
    """
    try:
        parts = urlsplit(url)
        scheme, at = parts.scheme, parts.hostname
    except ValueError:
        scheme, at = "", None
    if at is None or scheme not in {"http", "https"}:
        raise BadInput(
            f"the service's address {url!r} is none, such as https://api.example.com/live: it is the "
            "output Url of the service's stack"
        )
    if scheme != "https" and at not in _LOOPBACK:
        raise BadInput(f"the service's address {url!r} must be https; http is for loopback only")


class Service:
    """The service's API, for one agent or one person. Threads may share it.

    Args:
        url: Its address, with the stage where there is one.
        identity: Who signs; None: nobody, there is a session or none of both yet.
        clock: Tells when requests are signed, and when a token ends.
        session: What a person shows who signed in by the issuer.
    """

    def __init__(
        self, url: str, identity: Identity | None, clock: Clock, *, session: str = ""
    ) -> None:
        check_address(url)
        self._url = url.rstrip("/")
        self._signer = identity
        self._session = session
        self._clock = clock
        self._token: str | None = None
        self._until: datetime | None = None
        self._renewed_from: datetime | None = None
        self._pool = _pool(url)

    def ask[T](
        self, method: str, path: str, kind: type[T], document: msgspec.Struct | None = None
    ) -> T:
        """Ask what nobody needs to be known for.

        Raises:
            PlimsollError: see `_error`.
        """
        body = b"" if document is None else _body(document)
        return _read(self._send(method, path, body, {}), kind)

    def enrol(self, join_token: str, cluster_uid: str) -> access.Enrolled:
        """Enrol the key.

        Raises:
            MissingRights: the join token is unknown, used or too old.
            PlimsollError: see `_error`.
        """
        public = self._identity.public_key
        message = access.enrolment_message(join_token, public, cluster_uid)
        enrolment = access.Enrolment(
            join_token=join_token,
            public_key=public,
            cluster_uid=cluster_uid,
            signature=self._identity.key.sign(message),
        )
        return _read(self._send("POST", "/v1/enrolments", _body(enrolment), {}), access.Enrolled)

    def push(self, body: bytes) -> access.Accepted:
        """Send a snapshot, compressed as it is; it is kept once this returns.

        Raises:
            BadInput: nobody will ever take it.
            PlimsollError: see `_error`.
        """
        path = self._path("snapshots")
        return self.call("POST", path, access.Accepted, body=body, encoding="gzip")

    def forward(self, instances: Sequence[str]) -> None:
        """Tell of instances on whose Nodes another handler's interruption taint stands.

        Raises:
            PlimsollError: see `_error`.
        """
        said = TaintedInstances(instances=tuple(instances))
        self.call("POST", self._path("taints"), NoneType, body=_body(said))

    def queue_changed(self) -> None:
        """Tell that a Job of a batch queue changed.

        Raises:
            PlimsollError: see `_error`.
        """
        self.call("POST", self._path("queue-changes"), NoneType)

    def instructions(self) -> Instructions:
        """Return what is asked of the executor of this cluster.

        Raises:
            PlimsollError: see `_error`.
        """
        return self.call("GET", self._path("instructions"), Instructions)

    def report(self, results: Results) -> None:
        """Report what became of instructions.

        Raises:
            PlimsollError: see `_error`.
        """
        self.call("POST", self._path("results"), NoneType, body=_body(results))

    def call[T](  # noqa: PLR0913 - the parts of a request
        self,
        method: str,
        path: str,
        kind: type[T],
        *,
        query: str = "",
        body: bytes = b"",
        encoding: str | None = None,
        version: int | None = None,
    ) -> T:
        """Send a signed request and return its answer; once more where the token is refused.

        Args:
            method: In capitals.
            path: Without the stage, as in `/v1/clusters`.
            kind: What the answer is; `NoneType` where nothing in it is of interest.
            query: As it is to be sent.
            body: JSON, as it is to be sent.
            encoding: Of the body, where it is compressed.
            version: Of what is decided about, as it was seen; None: nothing is decided.

        Raises:
            BadInput: trying the same again is in vain.
            MissingRights: the key is not enrolled, or revoked.
            PlimsollError: see `_error`.
        """
        said: dict[str, str] = {}
        if encoding is not None:
            said["Content-Encoding"] = encoding
        if version is not None:
            said["If-Match"] = f'"{version}"'
        known = self._token
        answer = self._signed(method, path, query, body, said)
        # A token may become invalid early, after a key rotation or a revocation.
        # If the service refuses a fresh token too, that answer stands.
        if answer.status == _UNAUTHORIZED and known is not None:
            self._token = None
            answer = self._signed(method, path, query, body, said)
        if self._session and answer.status == _UNAUTHORIZED:
            raise MissingRights(f"your session at {self._url} is over: run `plimsoll login`")
        if answer.status >= _REFUSED:
            raise _error(answer)
        return _read(answer, kind)

    def _path(self, what: str) -> str:
        return f"/v1/clusters/{self._enrolled.cluster_id}/{what}"

    @property
    def _identity(self) -> Identity:
        if self._signer is None:
            raise MissingRights("there is no key")
        return self._signer

    @property
    def _enrolled(self) -> access.Enrolled:
        if self._identity.enrolled is None:
            raise MissingRights("the key is not enrolled")
        return self._identity.enrolled

    def _signed(
        self, method: str, path: str, query: str, body: bytes, said: Mapping[str, str]
    ) -> _Answer:
        if self._session:
            target = f"{path}?{query}" if query else path
            token = {"Authorization": f"Bearer {self._session}"}
            return self._request(method, target, body, {**said, **token})
        return self._signed_with(self._fresh_token(), method, path, query, body, said)

    def _signed_with(  # noqa: PLR0913, PLR0917 - the parts of a request
        self,
        token: str,
        method: str,
        path: str,
        query: str,
        body: bytes,
        said: Mapping[str, str],
    ) -> _Answer:
        now = self._clock.now()
        # The signature covers the compressed body, as it is sent.
        message = access.request_message(method, path, query, int(now.timestamp()), body)
        headers = {
            "Authorization": f"Bearer {token}",
            access.TIMESTAMP: str(int(now.timestamp())),
            access.SIGNATURE: b64encode(self._identity.key.sign(message)).decode(),
        }
        return self._request(
            method, f"{path}?{query}" if query else path, body, {**said, **headers}
        )

    def _fresh_token(self) -> str:
        now = self._clock.now()
        token, until = self._token, self._until
        if token is not None and until is not None and now < until:
            return self._renewed(token) if now >= (self._renewed_from or until) else token
        seconds = int(now.timestamp())
        payload = access.payload_of(
            access.Assertion(
                cluster_id=self._enrolled.cluster_id,
                kid=self._enrolled.kid,
                iat=seconds,
                exp=seconds + int(access.ASSERTION_LIFE.total_seconds()),
                jti=str(uuid4()),
            )
        )
        signature = self._identity.key.sign(access.assertion_message(payload))
        asked = _body(access.TokenRequest(payload=payload, signature=signature))
        granted = _read(self._send("POST", "/v1/token", asked, {}), access.Granted)
        return self._kept(granted, now)

    def _renewed(self, token: str) -> str:
        """Return a new token for one that is still good, past the rate that callers without a token share."""
        now = self._clock.now()
        answer = self._signed_with(token, "POST", self._path("token"), "", b"", {})
        if answer.status >= _REFUSED:
            # A person, or a service without this path: an assertion replaces the token in its time.
            self._renewed_from = None
            return token
        return self._kept(_read(answer, access.Granted), now)

    def _kept(self, granted: access.Granted, now: datetime) -> str:
        life = timedelta(seconds=granted.expires_in)
        self._token = granted.access_token
        self._until, self._renewed_from = now + life - _EARLY, now + life / 2
        return granted.access_token

    def _send(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> _Answer:
        answer = self._request(method, path, body, headers)
        if answer.status >= _REFUSED:
            raise _error(answer)
        return answer

    def _request(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> _Answer:
        said = {"Accept": "application/json", "User-Agent": "plimsoll-agent"}
        if body:
            said["Content-Type"] = "application/json"
        try:
            answer = self._pool.request(
                method,
                self._url + path,
                body=body or None,
                headers={**said, **headers},
                preload_content=False,
            )
            data = answer.read(MOST_BYTES + 1)
        except HTTPError as error:
            why = getattr(error, "reason", None) or error
            raise Temporary(
                f"{self._url} does not answer, is it the right address? {why}"
            ) from error
        if len(data) > MOST_BYTES:
            answer.close()
            raise Temporary(f"{self._url} answers with more than {MOST_BYTES} bytes")
        return _Answer(answer.status, answer.headers, data)


def _pool(url: str) -> PoolManager:
    # Whoever calls waits and tries again: what is sent again must be signed anew.
    settings: dict[str, Any] = {"timeout": _TIMEOUT, "retries": Retry(0, redirect=False)}
    host = urlsplit(url)
    proxy = None if proxy_bypass(host.netloc) else getproxies().get("https")
    if proxy is None or host.scheme != "https":
        return PoolManager(**settings)
    return ProxyManager(proxy, **settings)


def _body(document: msgspec.Struct) -> bytes:
    """Return a document as it is sent.

    Raises:
        BadInput: the service would refuse it.
    """
    try:
        return encode(document)
    except Unwritable as error:
        raise BadInput(f"the service would refuse it: {error}") from error


def _read[T](answer: _Answer, kind: type[T]) -> T:
    if kind is NoneType:
        return kind()
    try:
        return msgspec.json.decode(answer.data, type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Temporary(f"{kind.__name__}: the service's answer cannot be read: {error}") from error


def _error(answer: _Answer) -> PlimsollError:
    """Return what a refusal means.

    Temporary: try again later. MissingRights: the key is revoked, or not enrolled. BadInput: trying
    the same again is in vain.
    """
    try:
        problem = decode(answer.data, access.Problem)
        said = problem.detail or problem.title
    except Malformed:
        said = answer.data[:200].decode(errors="replace")
    text = f"the service answers {answer.status}: {said}"
    match answer.status:
        case 401 | 403 as status:
            cure = (
                ". Join again by a fresh join token, if it stays so"
                if status == _UNAUTHORIZED
                else ""
            )
            return MissingRights(text + cure)
        case 400 | 413 | 415 | 422:
            return BadInput(text)
        case 429:
            return Throttled(text, retry_after=retry_after_of(answer.headers.get("Retry-After")))
        # 409 may mean that somebody else wrote in between: the same request may succeed.
        case 408 | 409 | 425:
            return Temporary(text)
        case status if status >= _SERVER_ERROR:
            return Temporary(text, retry_after=retry_after_of(answer.headers.get("Retry-After")))
        case _:
            return Refused(text)
