"""A request of the API, as its views see it: who asks, and what stands in query, header and body."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from chalice.app import Request

from functions.authorizer import known
from plimsoll_service import bootstrap
from plimsoll_service.adapters.signers import is_signed
from plimsoll_service.domain.access import Principal, Role
from plimsoll_service.domain.advice import AdviceRequest
from plimsoll_service.domain.errors import Unproven, VersionMissing
from plimsoll_service.services.access import SignedRequest, refuse_others, refuse_unsigned
from plimsoll_service.services.limits import count
from plimsoll_service.services.paging import Filter, PageRequest, page_request
from plimsoll_service.wire.access import SIGNATURE, TIMESTAMP
from plimsoll_service.wire.documents import Malformed

FROM_ADDRESS_PER_MINUTE: Final = 120
"""Enrolments, and as many requests for tokens: the agents behind one address may all begin at once."""
_ETAG: Final = re.compile(r'"([0-9]{1,15})"')
"""A version, as If-Match names it. No weak ones, and no `*`: a decision is about what was seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """One request of one caller."""

    http: Request
    now: datetime = field(default_factory=lambda: bootstrap.clock().now())

    @property
    def body(self) -> bytes:
        """The body, as it came."""
        body = self.http.raw_body
        return body if isinstance(body, bytes) else body.encode()

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters of the query; of several of one name the last."""
        query: Mapping[str, str] = self.http.to_dict().get("query_params") or {}
        return query

    def page(self, prefix: str, filters: Mapping[str, Filter]) -> PageRequest:
        """Return which page of a list is asked for.

        Raises:
            Malformed: see `page_request`.
        """
        return page_request(self.query, prefix=prefix, filters=filters)

    def version(self) -> int:
        """Return the version of the recommendation that whoever decides has seen.

        Raises:
            VersionMissing: the request names none.
            Malformed: it names none that can be.
        """
        said = self.http.headers.get("If-Match", "")
        if not said:
            raise VersionMissing('name the version that you saw, as in the header If-Match: "7"')
        found = _ETAG.fullmatch(said)
        if found is None:
            raise Malformed(f'{said[:64]!r} names no version: it is like If-Match: "7"')
        return int(found[1])

    def principal(self) -> Principal:
        """Return who asks, as the authorizer says.

        Raises:
            Unproven: an agent asks, and did not sign.
        """
        # The authorizer checked the token of this request, and sees no body: the agent's
        # signature is checked here.
        principal = known(self.http.context["authorizer"])
        refuse_unsigned(principal, self._signed(), is_signed, self.now)
        return principal

    def agent(self, cluster: str) -> Principal:
        """Return the agent that asks about its own cluster.

        Raises:
            Unproven: as above.
            Forbidden: somebody else asks.
        """
        principal = self.principal()
        refuse_others(principal, cluster, Role.AGENT)
        return principal

    def counted(self) -> Principal:
        """Return who asks, counted against the reads of their tenant.

        Raises:
            Throttled: its people read too much.
        """
        person = self.principal()
        bootstrap.reads().of_tenant(person)
        return person

    def count_address(self, what: str) -> None:
        """Count a request of nobody yet against the limit of the address that it comes from.

        Raises:
            Throttled: too many came from there.
        """
        address = self.http.context["identity"]["sourceIp"]
        count(bootstrap.members(), address, what, most=FROM_ADDRESS_PER_MINUTE, now=self.now)

    def ask_for_advice(self, of: Principal, cluster: str) -> None:
        """Have what was written seen at once. Where that is refused, so is the request: it may come again.

        Raises:
            Temporary: the queue did not take it.
        """
        request = AdviceRequest(tenant=of.tenant, cluster=cluster, at=self.now)
        bootstrap.advice_queue().send([request])

    def _signed(self) -> SignedRequest:
        return SignedRequest(
            method=self.http.method,
            # API Gateway puts the stage before its own path, and a custom domain what it likes.
            path=self.http.context["resourcePath"].format(**(self.http.uri_params or {})),
            query=urlencode(sorted(self.query.items())),
            timestamp=self.http.headers.get(TIMESTAMP, ""),
            signature=_decoded(self.http.headers.get(SIGNATURE, "")),
            body=self.body,
        )


def _decoded(signature: str) -> bytes:
    try:
        return base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Unproven(f"{SIGNATURE} is no base64") from error
