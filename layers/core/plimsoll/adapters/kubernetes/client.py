"""Requests over HTTPS, by the connection pools that boto3 uses too.

The token is asked for at each request, because it outlives neither Lambda's freezes nor a drain.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from functools import cached_property
from threading import Lock
from typing import Any, Final, Protocol, Unpack
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec
from urllib3 import PoolManager, ProxyManager, Retry, Timeout
from urllib3.exceptions import HTTPError, SSLError

from plimsoll.adapters.kubernetes.events import WatchedEvents
from plimsoll.adapters.kubernetes.transport import RequestParts, Response
from plimsoll.adapters.workers import THREADS
from plimsoll.domain.errors import Refused, Temporary

CONNECT_SECONDS: Final = 2.0
READ_SECONDS: Final = 5.0
WATCH_CONNECTIONS: Final = 16
"""More than a reconcile begins."""
CONNECTIONS: Final = THREADS + WATCH_CONNECTIONS
"""One for each thread, and one for each watch."""

_OK: Final = 200
_UNAUTHORIZED: Final = 401
USER_AGENT: Final = "plimsoll"
PLAYED: Final = "plimsoll-doctor"
"""Whom an administrator plays who comes as a group: that name has no rights of its own.

https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/
"""


class Token(Protocol):
    """A bearer token that may be replaced while we use it."""

    def get(self) -> str:
        """Return a token that is good for the next seconds."""

    def forget(self) -> None:
        """Do not hand out the present one again: it was refused."""


class ClientTransport:
    """Carries requests over HTTPS.

    Tried again at once is only what did no harm: a connection that was never made, and a GET whose
    connection broke. A slow answer to a GET may so take ten seconds before it is given up.

    Args:
        endpoint: `https://…`; `http://…` on loopback, for rigs.
        ca: The CA certificate in PEM; None trusts the public ones. It never touches a disk.
        token: None sends none.
        connections: How many are kept open; more calls at once than these open more, and close them.
        as_group: Come as a member of this group and of no other. Only administrators may.
        as_user: Come as this user; a ServiceAccount comes with its groups. Whom, RBAC's verb `impersonate` says.
        user_agent: The API server takes its first part as the field manager.
    """

    def __init__(  # noqa: PLR0913 - what a connection is made of
        self,
        endpoint: str,
        *,
        ca: str | None = None,
        token: Token | None = None,
        connections: int = CONNECTIONS,
        as_group: str | None = None,
        as_user: str | None = None,
        user_agent: str = USER_AGENT,
    ) -> None:
        self._as_group = as_group
        self._as_user = as_user
        self._user_agent = user_agent
        self._endpoint = endpoint.rstrip("/")
        self._ca = ca
        self._token = token
        self._connections = connections
        self._lock = Lock()

    def call(self, method: str, path: str, **more: Unpack[RequestParts]) -> Response:
        """Send a request and return its answer, whatever its status.

        A 401 is asked once more with a fresh token: an old one may just have run out.

        Raises:
            Temporary: there is no answer.
            Refused: the certificate is not signed by the given CA.
        """
        answer = self._send(method, path, **more)
        # Only once: if the API server refuses a fresh token too, its age is not the reason.
        if answer.status == _UNAUTHORIZED and self._token is not None:
            self._token.forget()
            answer = self._send(method, path, **more)
        return answer

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str | None = None,
    ) -> Response:
        query = query or {}
        watch = "watch" in query
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "gzip",  # lists shrink to a sixth: docs/operate/cost.md
            "User-Agent": self._user_agent,
        }
        if content_type is not None:
            headers["Content-Type"] = content_type
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token.get()}"
        if self._as_user is not None:
            headers["Impersonate-User"] = self._as_user
        if self._as_group is not None:
            # The API server refuses to impersonate a group without a user.
            headers |= {"Impersonate-User": PLAYED, "Impersonate-Group": self._as_group}
        try:
            response = self._connected().request(
                method,
                f"{self._endpoint}{path}?{urlencode(query)}" if query else self._endpoint + path,
                headers=headers,
                body=None if body is None else msgspec.json.encode(body),
                timeout=Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS),
                preload_content=not watch,
            )
            # A refused watch has a short body, which is read like any other answer.
            if watch and response.status == _OK:
                return Response(
                    status=response.status,
                    events=WatchedEvents(response, float(query["timeoutSeconds"])),
                )
        except HTTPError as error:
            if isinstance(getattr(error, "reason", error), SSLError | ssl.SSLError):
                raise self._untrusted(error) from error
            raise Temporary(f"{self._endpoint} does not answer {method}: {error}") from error
        return Response(
            status=response.status,
            content=response.data,
            headers={name.lower(): value for name, value in response.headers.items()},
        )

    def _untrusted(self, why: object) -> Refused:
        return Refused(
            f"{self._endpoint} cannot be trusted: {why}. Give the CA certificate that signs the API "
            "server's"
        )

    def _connected(self) -> PoolManager:
        with self._lock:
            return self._pool

    @cached_property
    def _pool(self) -> PoolManager:
        # `allowed_methods` limits only repetitions after a request
        # was sent. urllib3 repeats a failed connect for every method.
        # https://urllib3.readthedocs.io/en/stable/reference/urllib3.util.html#urllib3.util.Retry
        settings: dict[str, Any] = {
            "maxsize": self._connections,
            "retries": Retry(
                total=1,
                connect=1,
                read=1,
                status=0,
                redirect=0,
                other=0,
                allowed_methods={"GET"},
                raise_on_status=False,
                # The services decide how long to wait: urllib3 would sleep here even if a deadline is near.
                respect_retry_after_header=False,
            ),
        }
        if self._ca is not None:
            settings["ssl_context"] = _context(self._ca)
        host = urlsplit(self._endpoint)
        proxy = None if proxy_bypass(host.netloc) else getproxies().get("https")
        if proxy and host.scheme == "https":  # without TLS it is a rig on loopback
            return ProxyManager(proxy, **settings)
        return PoolManager(**settings)


def _context(ca: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=ca)
    except ssl.SSLError as error:
        raise Refused(f"the CA certificate is not PEM: {error}") from error
    # Python 3.13 insists on extensions that the CAs of EKS and of older kubeadm clusters lack. The
    # chain is verified all the same, against this one CA.
    # https://github.com/kubernetes-client/python/issues/2394
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
