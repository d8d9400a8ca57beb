"""What carries a request to an API server and brings the answer: HTTPS, or a model in process.

Plain JSON on both sides. Building the official client's typed models takes longer than the request
itself, and a plan reads a dozen fields of each object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """An answer of any status; a refusal is an answer too."""

    status: int
    body: Any = None
    """JSON; where the other side sent something else, its text."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""


class Transport(Protocol):
    """Carries one request. Threads may share it."""

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

        Raises:
            Temporary: there is no answer.
            Refused: the connection cannot be trusted.
        """
