"""Requests to one cluster: built from the table of calls, refused in our words, lists in pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from plimsoll.adapters.kubernetes.calls import Call
from plimsoll.adapters.kubernetes.errors import refusal
from plimsoll.adapters.kubernetes.transport import Transport
from plimsoll.domain.errors import Temporary

PAGE: Final = 500
"""Objects in a page of a list: the API server answers larger ones with more delay and memory.

https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks
"""

_REFUSED: Final = 400
_EXPIRED: Final = 410
MERGE_PATCH: Final = "application/merge-patch+json"

type Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Makes calls to one cluster."""

    transport: Transport
    cluster: str
    """Its name, for messages."""

    def send(
        self,
        call: Call,
        *,
        namespace: str | None = None,
        name: str | None = None,
        body: object = None,
        dry_run: bool = False,
    ) -> Json:
        """Make a call and return the answer's body.

        Raises:
            PlimsollError: see `plimsoll.adapters.kubernetes.errors`.
        """
        kind = MERGE_PATCH if call.verb == "patch" else "application/json"
        collection = call.verb == "create" and "/" not in call.resource
        answer = self.transport.call(
            call.method,
            call.path(namespace=namespace, name=None if collection else name),
            query={"dryRun": "All"} if dry_run else None,
            body=body,
            content_type=None if body is None else kind,
        )
        if answer.status >= _REFUSED:
            about = "/".join(part for part in (namespace, name) if part)
            raise refusal(self.cluster, call, about, answer)
        if not isinstance(answer.body, Mapping):
            raise Temporary(f"cluster {self.cluster}: {call}: the answer is not JSON")
        return answer.body

    def list(self, call: Call, *, fields: str | None = None) -> list[Json]:
        """Return all objects, of all namespaces.

        A list whose later pages have expired is read once more from the start.

        Raises:
            PlimsollError: see `plimsoll.adapters.kubernetes.errors`.
        """
        try:
            return list(self._pages(call, fields))
        except _ExpiredError:
            try:
                return list(self._pages(call, fields))
            except _ExpiredError as error:
                raise Temporary(f"cluster {self.cluster}: {call}: expired twice") from error

    def _pages(self, call: Call, fields: str | None) -> Iterator[Json]:
        query = {"limit": str(PAGE)} | ({"fieldSelector": fields} if fields else {})
        while True:
            answer = self.transport.call(call.method, call.path(), query=query)
            if answer.status == _EXPIRED:
                raise _ExpiredError
            if answer.status >= _REFUSED:
                raise refusal(self.cluster, call, "", answer)
            if not isinstance(answer.body, Mapping):
                raise Temporary(f"cluster {self.cluster}: {call}: the answer is not JSON")
            yield from answer.body.get("items") or []
            more = (answer.body.get("metadata") or {}).get("continue")
            if not more:
                return
            query["continue"] = more


class _ExpiredError(Exception):
    """410: the continue token is older than what the API server keeps, about five minutes."""
