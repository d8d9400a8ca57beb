"""Requests over the official client: its REST layer and connection pool, none of its models.

Importing it costs a fifth of a second or more, so it is imported at the first request. The token is
asked for at each request, because it outlives neither Lambda's freezes nor a drain.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from functools import cached_property
from threading import Lock
from typing import Any, Final, Protocol

from plimsoll.adapters.kubernetes.transport import Response
from plimsoll.domain.errors import Refused, Temporary

CONNECT_SECONDS: Final = 2.0
READ_SECONDS: Final = 5.0
CONNECTIONS: Final = 16
"""One for each thread of `plimsoll.adapters.workers`."""

_UNAUTHORIZED: Final = 401
USER_AGENT: Final = "plimsoll"
PLAYED: Final = "plimsoll-doctor"
"""Whom an administrator plays who comes as a group: that name has no rights of its own.

https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/
"""


def load() -> None:
    """Import the official client now instead of at the first request."""
    import kubernetes.client.rest  # noqa: F401, PLC0415 - see above


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
        user_agent: str = USER_AGENT,
    ) -> None:
        self._as_group = as_group
        self._user_agent = user_agent
        self._endpoint = endpoint.rstrip("/")
        self._ca = ca
        self._token = token
        self._connections = connections
        self._lock = Lock()

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str | None = None,
    ) -> Response:
        """Send a request and return its answer, whatever its status.

        A 401 is asked once more with a fresh token: an old one may just have run out.

        Raises:
            Temporary: there is no answer.
            Refused: the certificate is not signed by the given CA.
        """
        answer = self._send(method, path, query, body, content_type)
        if answer.status == _UNAUTHORIZED and self._token is not None:
            self._token.forget()
            answer = self._send(method, path, query, body, content_type)
        return answer

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: object,
        content_type: str | None,
    ) -> Response:
        from kubernetes.client.exceptions import ApiException  # noqa: PLC0415 - see above
        from urllib3.exceptions import HTTPError  # noqa: PLC0415 - comes with it

        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "gzip",  # lists shrink to a sixth: docs/performance.md
            "User-Agent": self._user_agent,
        }
        if content_type is not None:
            headers["Content-Type"] = content_type
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token.get()}"
        if self._as_group is not None:
            headers |= {"Impersonate-User": PLAYED, "Impersonate-Group": self._as_group}
        try:
            response = self._connected().request(
                method,
                self._endpoint + path,
                query_params=dict(query or {}),
                headers=headers,
                body=body,
                _request_timeout=(CONNECT_SECONDS, READ_SECONDS),
            )
        except ApiException as error:
            if error.status:
                return _answer(error.status, error.body, error.headers or {})
            raise self._untrusted(error.reason) from error
        except HTTPError as error:
            if isinstance(getattr(error, "reason", error), _ssl_errors()):
                raise self._untrusted(error) from error
            raise Temporary(f"{self._endpoint} does not answer {method}: {error}") from error
        return _answer(response.status, response.data, response.getheaders())

    def _untrusted(self, why: object) -> Refused:
        return Refused(
            f"{self._endpoint} cannot be trusted: {why}. Give the CA certificate that signs the API "
            "server's"
        )

    def _connected(self) -> Any:
        with self._lock:
            return self._rest

    @cached_property
    def _rest(self) -> Any:
        from kubernetes.client.configuration import Configuration  # noqa: PLC0415 - see above
        from kubernetes.client.rest import RESTClientObject  # noqa: PLC0415 - see above
        from urllib3 import Retry  # noqa: PLC0415 - comes with it

        configuration = Configuration(host=self._endpoint)  # type: ignore[no-untyped-call] # has no types
        configuration.retries = Retry(
            total=1,
            connect=1,
            read=1,
            status=0,
            redirect=0,
            other=0,
            allowed_methods={"GET"},
            raise_on_status=False,
            respect_retry_after_header=False,
        )
        if self._endpoint.startswith("http:"):
            configuration.proxy = None  # a rig on loopback
        rest = RESTClientObject(configuration, maxsize=self._connections)  # type: ignore[no-untyped-call] # has no types
        if self._ca is not None:
            # The client takes a CA only as a file; its pool takes a context made in memory.
            pool = rest.pool_manager.connection_pool_kw
            pool["ca_certs"] = None
            pool["ssl_context"] = _context(self._ca)
        return rest


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


def _ssl_errors() -> tuple[type[Exception], ...]:
    from urllib3.exceptions import SSLError  # noqa: PLC0415 - comes with the client

    return (SSLError, ssl.SSLError)


def _answer(status: int, data: str | None, headers: Mapping[str, str]) -> Response:
    body: Any = data
    if data:
        try:
            body = json.loads(data)
        except (ValueError, RecursionError):
            body = data  # a proxy's page, for example: the error says its first words
    return Response(
        status=status, body=body, headers={name.lower(): value for name, value in headers.items()}
    )
