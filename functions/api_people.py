"""The requests about people: keys, sign-in, sessions and API tokens."""

from __future__ import annotations

from typing import Final

import msgspec

from functions.api_requests import ApiRequest
from plimsoll_service import bootstrap
from plimsoll_service.services.clusters import MEMBER, MEMBER_FILTERS
from plimsoll_service.services.people import sign_in
from plimsoll_service.wire.documents import decode
from plimsoll_service.wire.people import Issuer, NewToken, SignIn, StartedDevice


def list_members(asked: ApiRequest) -> msgspec.Struct:
    """List the agents and people who hold a key."""
    return bootstrap.reads().let_in(asked.principal(), asked.page(MEMBER, MEMBER_FILTERS))


def read_issuer(asked: ApiRequest) -> msgspec.Struct:  # noqa: ARG001 - of every view
    """Return the issuer at which people sign in."""
    party = bootstrap.relying_party()
    endpoints = party.provider.endpoints()
    return Issuer(
        issuer=party.client.issuer,
        client_id=party.client.client_id,
        scopes=party.client.scopes,
        authorization_endpoint=endpoints.authorization,
        names_itself=endpoints.names_itself,
        device=endpoints.device is not None,
    )


def start_device(asked: ApiRequest) -> msgspec.Struct:
    """Begin a sign-in by device code."""
    asked.count_address("devices")
    started = bootstrap.relying_party().begin_device()
    return msgspec.convert(started, StartedDevice, from_attributes=True)


def begin_session(asked: ApiRequest) -> msgspec.Struct:
    """Exchange the code of a sign-in, or a device code, for a session."""
    asked.count_address("sessions")
    brought = decode(asked.body, SignIn)
    return sign_in(bootstrap.relying_party(), bootstrap.sessions(), brought, asked.now)


def end_session(asked: ApiRequest) -> msgspec.Struct:
    """End the session of the request."""
    return bootstrap.people().sign_out(asked.principal())


def read_people(asked: ApiRequest) -> msgspec.Struct:
    """List the sessions, API tokens and bound groups of the tenant."""
    return bootstrap.people().people(asked.counted(), asked.now)


def end_access(asked: ApiRequest, access: str) -> msgspec.Struct:
    """End a session, or revoke an API token."""
    return bootstrap.people().end(asked.counted(), access, asked.now)


def make_token(asked: ApiRequest) -> msgspec.Struct:
    """Make an API token."""
    wanted = decode(asked.body, NewToken)
    return bootstrap.people().make_token(asked.counted(), wanted, asked.now)


VIEWS: Final = (
    list_members,
    read_issuer,
    start_device,
    begin_session,
    end_session,
    read_people,
    end_access,
    make_token,
)
