"""The requests about people: keys, sign-in, sessions and API tokens."""

from __future__ import annotations

from typing import Final

from plimsoll_service.domain.access import Role
from plimsoll_service.openapi.operation import Operation
from plimsoll_service.services.clusters import MEMBER_FILTERS
from plimsoll_service.services.paging import query_schemas
from plimsoll_service.wire.clusters import Members
from plimsoll_service.wire.people import (
    Ended,
    Issuer,
    MadeToken,
    NewToken,
    People,
    SignedIn,
    SignIn,
    StartedDevice,
)

OPERATIONS: Final = (
    Operation(
        name="list_members",
        method="GET",
        path="/v1/members",
        role=Role.PERSON,
        answer=Members,
        query=query_schemas(MEMBER_FILTERS),
        summary="List the agents and people who hold a key (admin)",
    ),
    Operation(
        name="read_issuer",
        method="GET",
        path="/v1/issuer",
        role=None,
        answer=Issuer,
        summary="Read the issuer at which people sign in",
    ),
    Operation(
        name="start_device",
        method="POST",
        path="/v1/devices",
        role=None,
        answer=StartedDevice,
        status=201,
        summary="Begin a sign-in by device code",
    ),
    Operation(
        name="begin_session",
        method="POST",
        path="/v1/sessions",
        role=None,
        body=SignIn,
        answer=SignedIn,
        status=201,
        summary="Exchange the code of a sign-in, or a device code, for a session",
    ),
    Operation(
        name="end_session",
        method="DELETE",
        path="/v1/session",
        role=Role.PERSON,
        answer=Ended,
        summary="End the session of the request",
    ),
    Operation(
        name="read_people",
        method="GET",
        path="/v1/people",
        role=Role.PERSON,
        answer=People,
        summary="List the sessions, API tokens and bound groups of the tenant (admin)",
    ),
    Operation(
        name="end_access",
        method="DELETE",
        path="/v1/people/{access}",
        role=Role.PERSON,
        answer=Ended,
        summary="End a session, or revoke an API token (admin)",
    ),
    Operation(
        name="make_token",
        method="POST",
        path="/v1/tokens",
        role=Role.PERSON,
        body=NewToken,
        answer=MadeToken,
        status=201,
        summary="Make an API token (admin)",
    ),
)
