"""What carries a request to an API server and brings the answer: HTTPS, or a model in process.

Building the official client's typed models takes longer than the request itself, and a plan reads a
dozen fields of each object: see `plimsoll.adapters.kubernetes.schema`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypedDict, Unpack

import msgspec
from msgspec import Raw


class Events(Protocol):
    """What a watch tells, while it lasts."""

    @property
    def over(self) -> bool:
        """Whether nothing more will come than what can be taken now."""

    def take(self) -> Sequence[Raw | Mapping[str, Any]]:
        """Return the lines that came since the last time, without waiting."""

    def close(self) -> None:
        """Hear no more."""


class Response:
    """An answer of any status; a refusal is an answer too.

    Args:
        status: The HTTP status.
        body: What it says, where that is at hand as it is; else it is read from `content`.
        content: The bytes that came; None in a model in process.
        headers: Names in lower case.
        events: The answer to a watch, that is to a GET with `watch` in its query.
    """

    __slots__ = ("_body", "content", "events", "headers", "status")

    def __init__(
        self,
        *,
        status: int,
        body: Any = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        events: Events | None = None,
    ) -> None:
        self.status = status
        self.events = events
        self.headers: Mapping[str, str] = headers or {}
        self._body = body
        self.content = content

    @property
    def body(self) -> Any:
        """JSON; where the other side sent something else, its text."""
        if self._body is None and self.content:
            try:
                self._body = msgspec.json.decode(self.content)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self._body = self.content.decode(errors="replace")  # a proxy's page, for example
        return self._body


class RequestParts(TypedDict, total=False):
    """What a request may say beside its method and its path."""

    query: Mapping[str, str] | None
    body: object
    content_type: str | None


class Transport(Protocol):
    """Carries one request. Threads may share it."""

    def call(self, method: str, path: str, **more: Unpack[RequestParts]) -> Response:
        """Send a request and return its answer, whatever its status.

        Raises:
            Temporary: there is no answer.
            Refused: the connection cannot be trusted.
        """
