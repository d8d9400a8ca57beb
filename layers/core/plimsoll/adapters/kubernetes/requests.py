"""Requests to one cluster: built from the table of calls, refused in our words, lists in pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
from msgspec import Raw

from plimsoll.adapters.kubernetes.calls import Call
from plimsoll.adapters.kubernetes.errors import GRANT, Grant, refusal
from plimsoll.adapters.kubernetes.transport import Events, Response, Transport
from plimsoll.domain.errors import BadInput, Refused, Temporary

PAGE_OBJECTS: Final = 500
"""Objects in a page of a list: the API server answers larger ones with more delay and memory.

https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks
"""

_REFUSED: Final = 400
_EXPIRED: Final = 410
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"

type Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Makes calls to one cluster."""

    transport: Transport
    cluster: str
    """Its name, for messages."""
    grant: Grant = GRANT
    """What gives us our rights there, for messages."""

    def send(  # noqa: PLR0913 - the parts of a request
        self,
        call: Call,
        *,
        namespace: str | None = None,
        name: str | None = None,
        body: object = None,
        dry_run: bool = False,
        strict: bool = False,
    ) -> Json:
        """Make a call and return the answer's body.

        Args:
            call: What is asked.
            namespace: Of the object.
            name: Of the object.
            body: An object, or what is to be changed: a mapping is a merge patch, a list a JSON patch.
            dry_run: Change nothing.
            strict: Refuse fields that the API server does not know; else it drops them.

        Raises:
            PlimsollError: see `plimsoll.adapters.kubernetes.errors`.
        """
        patch = JSON_PATCH if isinstance(body, list) else MERGE_PATCH
        kind = patch if call.verb == "patch" else "application/json"
        query = ({"dryRun": "All"} if dry_run else {}) | (
            {"fieldValidation": "Strict"} if strict else {}
        )
        # An object is created at its collection, and a subresource, as an eviction is, at its object.
        collection = call.verb == "create" and "/" not in call.resource
        answer = self.transport.call(
            call.method,
            call.path(namespace=namespace, name=None if collection else name),
            query=query or None,
            body=body,
            content_type=None if body is None else kind,
        )
        if answer.status >= _REFUSED:
            about = "/".join(part for part in (namespace, name) if part)
            raise refusal(self.cluster, call, about, answer, self.grant)
        if not isinstance(answer.body, Mapping):
            raise Temporary(f"cluster {self.cluster}: {call}: the answer is not JSON")
        return answer.body

    def pages(
        self, call: Call, *, fields: str | None = None, labels: str | None = None
    ) -> Iterator[Page]:
        """Yield all objects, of all namespaces, page by page: the JSON of a whole list never exists.

        Raises:
            ExpiredError: the later pages have expired; read again from the start.
            PlimsollError: see `plimsoll.adapters.kubernetes.errors`.
        """
        query = {"limit": str(PAGE_OBJECTS)} | _selectors(fields, labels)
        while True:
            answer = self.transport.call(call.method, call.path(), query=query)
            if answer.status == _EXPIRED:
                raise ExpiredError(f"cluster {self.cluster}: {call}: expired")
            if answer.status >= _REFUSED:
                raise refusal(self.cluster, call, "", answer, self.grant)
            try:
                page = page_of(answer)
            except BadInput as error:
                raise Temporary(f"cluster {self.cluster}: {call}: {error}") from error
            yield page
            if not page.metadata.more:
                return
            # The selectors stay the same: the token is valid for its own query only.
            query["continue"] = page.metadata.more

    def watch(
        self,
        call: Call,
        *,
        fields: str | None,
        revision: str,
        seconds: int,
        labels: str | None = None,
    ) -> Events:
        """Follow what a call lists, from a resourceVersion on.

        Raises:
            ExpiredError: changes since then are no longer kept; list again.
            Refused: they cannot be watched.
            PlimsollError: see `plimsoll.adapters.kubernetes.errors`.
        """
        query = {
            "watch": "1",
            "resourceVersion": revision,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        answer = self.transport.call(
            call.method, call.path(), query=query | _selectors(fields, labels)
        )
        call = replace(call, verb="watch")
        if answer.status == _EXPIRED:
            raise ExpiredError(f"cluster {self.cluster}: {call}: expired")
        if answer.status >= _REFUSED:
            raise refusal(self.cluster, call, "", answer, self.grant)
        if answer.events is None:
            raise Refused(f"cluster {self.cluster}: {call}: the answer is no watch")
        return answer.events

    def list(self, call: Call, *, fields: str | None = None) -> list[Json]:
        """Return all objects whole: for kinds of which there are few.

        Raises:
            PlimsollError: see `plimsoll.adapters.kubernetes.errors`.
        """
        return again_if_expired(
            lambda: [
                msgspec.json.decode(item) if isinstance(item, Raw) else item
                for page in self.pages(call, fields=fields)
                for item in page.items or ()
            ]
        )


def _selectors(fields: str | None, labels: str | None) -> dict[str, str]:
    said = {"fieldSelector": fields, "labelSelector": labels}
    return {name: text for name, text in said.items() if text}


class ExpiredError(Temporary):
    """410: the continue token is older than what the API server keeps, about five minutes."""


def again_if_expired[T](read: Callable[[], T]) -> T:
    """Read a list, and once more from the start if its later pages have expired meanwhile."""
    try:
        return read()
    except ExpiredError:
        return read()


class _ListMeta(msgspec.Struct, rename="camel"):
    more: str = msgspec.field(default="", name="continue")
    resource_version: str = ""


class Page(msgspec.Struct):
    """Some objects of a list, none of them decoded, and where it goes on."""

    items: list[Any] | None = None
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)


class _RawPage(Page):
    items: list[Raw] | None = None


_PAGE: Final = msgspec.json.Decoder(_RawPage)


def page_of(answer: Response) -> Page:
    """Read a page of a list.

    Raises:
        BadInput: it is no page of a list.
    """
    try:
        if answer.content is None:
            return msgspec.convert(answer.body, Page)
        return _PAGE.decode(answer.content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"the answer is no list: {error}") from None
