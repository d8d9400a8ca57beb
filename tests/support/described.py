"""What the description of the service's API allows, as Schemathesis draws it, and whether an answer is as it says."""

from __future__ import annotations

import base64
import json
from typing import Any

import schemathesis
from hypothesis import strategies as st
from schemathesis.checks import CHECKS, load_all_checks

from plimsoll_service.openapi import Operation, document
from plimsoll_service.wire.access import SIGNATURE, TIMESTAMP
from tests.support.enrolled import Key

type Case = schemathesis.Case[Any]

SCHEMA = schemathesis.openapi.from_dict(document())
load_all_checks()
HELD: Any = CHECKS.get_by_names(
    [
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_schema_conformance",
    ]
)


def requests_for(operation: Operation) -> st.SearchStrategy[Case]:
    return SCHEMA[operation.path][operation.method].as_strategy()


def path_of(case: Case, cluster: str) -> str:
    """The path that was drawn, of a cluster that exists: of any other all answers are the same."""
    given = {**(case.path_parameters or {}), "cluster": cluster}
    path: str = case.operation.path.format(**given)
    return path


def body_of(case: Case, operation: Operation) -> bytes:
    if operation.body is None:
        return b""
    return case.body if isinstance(case.body, bytes) else json.dumps(case.body).encode()


def versions_of(case: Case) -> dict[str, str]:
    """The header that names the version which is decided about, where one was drawn that HTTP can carry."""
    said = dict[str, Any](case.headers or {}).get("If-Match")
    return (
        {"If-Match": said}
        if isinstance(said, str) and said.isascii() and said.isprintable()
        else {}
    )


def signed_headers(key: Key, token: str, method: str, path: str, **of: Any) -> dict[str, str]:
    """The headers of a signed request; `of` are its time `at` and its `body`."""
    request = key.request(method, path, **of)
    return {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        TIMESTAMP: request.timestamp,
        SIGNATURE: base64.b64encode(request.signature).decode(),
    }


def refuse_undescribed(case: Case, answer: Any) -> None:
    """Fail where an answer is a fault of ours, or none that the description names."""
    case.validate_response(answer, checks=HELD)
