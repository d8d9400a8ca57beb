"""How people sign in by the company's issuer, and what an admin sees of people."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from plimsoll_service.wire.documents import Count, Text, Words
from plimsoll_service.wire.names import Uid

type Secret = Annotated[str, Meta(min_length=1, max_length=4096)]
"""A code, or another secret of a sign-in: as long as issuers make them."""
type Role = Annotated[str, Meta(pattern=r"^(viewer|operator|admin)\Z")]


class Part(Struct, frozen=True):
    """Part of a message."""


class Issuer(Part, frozen=True, kw_only=True):
    """Where people sign in."""

    issuer: Words
    client_id: Words
    scopes: Words
    authorization_endpoint: Annotated[str, Meta(max_length=2048)]
    names_itself: bool
    """Whether the answer in the browser carries `iss`."""
    device: bool
    """Whether people may sign in by a device code."""


class StartedDevice(Part, frozen=True, kw_only=True):
    """A sign-in by device code that has begun."""

    device_code: Secret
    """The secret of whoever asks for the session."""
    user_code: Text
    verification_uri: Annotated[str, Meta(max_length=2048)]
    expires_in: Count
    """Seconds."""
    interval: Count
    """Seconds between two requests for the session."""


class SignIn(Part, frozen=True, kw_only=True):
    """The result of a sign-in: the code from the browser and the values that began it, or a device code."""

    code: Secret | None = None
    verifier: Annotated[str, Meta(max_length=128)] = ""
    """Of PKCE (RFC 7636)."""
    nonce: Annotated[str, Meta(max_length=128)] = ""
    redirect_uri: Annotated[
        str, Meta(pattern=r"^(http://127\.0\.0\.1:[0-9]{1,5}/callback)?\Z", max_length=64)
    ] = ""
    """On loopback: what a browser brings to the console is redeemed by the console."""
    device_code: Secret | None = None
    tenant: Annotated[str, Meta(max_length=40)] | None = None
    """For people whose groups are bound to several."""


class SignedIn(Part, frozen=True, kw_only=True):
    """A session."""

    token: Secret
    """Show it as a bearer."""
    tenant: Text
    person: Uid
    name: Text
    expires: datetime


class Limits(Part, frozen=True, kw_only=True):
    """A role, and where it holds."""

    role: Role
    clusters: Annotated[tuple[Uid, ...], Meta(min_length=1, max_length=20)] | None = None
    """Ids; null: the whole tenant."""


class NewToken(Part, frozen=True, kw_only=True):
    """An API token that is asked for."""

    name: Annotated[str, Meta(max_length=40)]
    grant: Limits
    days: Annotated[int, Meta(ge=1, le=365)]


class MadeToken(Part, frozen=True, kw_only=True):
    """An API token that was made. Its secret is never told again."""

    id: Uid
    token: Secret
    expires: datetime


class TokenRow(Part, frozen=True, kw_only=True):
    """An API token."""

    id: Uid
    name: Text
    grant: Limits
    made_by: Text
    made: datetime
    expires: datetime
    seen: datetime | None
    """When it was used last, to the minute; null: never."""


class SessionRow(Part, frozen=True, kw_only=True):
    """A session of a person."""

    id: Uid
    person: Uid
    name: Text
    groups: tuple[Text, ...]
    began: datetime
    seen: datetime
    expires: datetime


class BindingRow(Part, frozen=True, kw_only=True):
    """The role of one group of the issuer, and on which clusters."""

    group: Text
    grant: Limits


class People(Part, frozen=True, kw_only=True):
    """The bound groups, open sessions and API tokens of a tenant."""

    bindings: tuple[BindingRow, ...]
    sessions: tuple[SessionRow, ...]
    """The one that was used last first."""
    tokens: tuple[TokenRow, ...]
    left_out: Count = 0
    """Sessions beyond the first 1,000."""


class Ended(Part, frozen=True, kw_only=True):
    """A session or API token that is over."""

    id: Uid
