"""The service's API: each operation is declared in `service.yaml`, described in `openapi`, and routed here by Chalice.

Who asks comes from the authorizer and never from the request; a request of an agent is signed too.
Everything that is refused is `application/problem+json` (RFC 9457).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec
from chalice.app import Chalice, Request, Response

from functions import api_agents, api_clusters, api_decisions, api_people
from functions.api_requests import ApiRequest
from functions.refusals import detail_of, note, retry_after, status_of
from plimsoll.domain.errors import BadInput
from plimsoll.observability import logger, metrics
from plimsoll_service.domain.metrics import ServiceMetric
from plimsoll_service.openapi import OPERATIONS, Operation, document
from plimsoll_service.wire.access import Problem
from plimsoll_service.wire.documents import Malformed, encode

app = Chalice(app_name="plimsoll")
_ANY: Final = ["*/*"]
_JSON: Final = ["application/json"]
_NAME: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
"""What stands in a path, as the description says: a key of a table has room for it."""
_PROBLEM: Final = "application/problem+json"
type View = Callable[..., msgspec.Struct]
_VIEWS: Final[Mapping[str, View]] = {
    view.__name__: view
    for of in (api_agents, api_clusters, api_decisions, api_people)
    for view in of.VIEWS
}
"""The name of an operation -> what answers it."""


def _routed(operation: Operation, view: View) -> Callable[..., Response]:
    """Answer with what a view returns, as JSON; and with a problem where it raises."""

    def carried_out(**parts: str) -> Response:
        try:
            for name, value in parts.items():
                if _NAME.fullmatch(value) is None:
                    raise Malformed(f"{value[:64]!r} is no {name}")  # noqa: TRY301 - becomes an answer
            found = view(ApiRequest(http=_request()), **parts)
            return _response(encode(found), HTTPStatus(operation.status))
        except Exception as error:  # noqa: BLE001 - each becomes an answer; a fault is logged
            return _problem(error)

    return carried_out


for _operation in OPERATIONS:
    app.route(
        _operation.path,
        methods=[_operation.method],
        name=_operation.name,
        # An agent's body is gzip; what has no body keeps the type that Chalice asks for.
        content_types=_ANY if _operation.method == "POST" else _JSON,
    )(_routed(_operation, _VIEWS[_operation.name]))


@app.middleware("http")
def router_refusals(event: Request, get_response: Callable[[Request], Response]) -> Response:
    """Make a problem of what Chalice itself refuses: a method, or a kind of content."""
    answered = get_response(event)
    if isinstance(answered.body, Mapping):
        status = HTTPStatus(answered.status_code)
        problem = Problem(
            title=status.phrase, status=status, detail=answered.body["Message"][:1024]
        )
        headers = {**answered.headers, "Content-Type": _PROBLEM}
        return Response(encode(problem).decode(), headers=headers, status_code=status)
    return answered


@app.route("/v1/openapi.json", methods=["GET"])
def read_openapi() -> Response:
    """Return the description of this API."""
    return _response(msgspec.json.encode(document()), HTTPStatus.OK)


@metrics.log_metrics
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer a request of API Gateway."""
    answered: dict[str, Any] = app(event, context)
    return answered


def _request() -> Request:
    request = app.current_request
    if request is None:
        raise BadInput("this is no request of API Gateway")
    return request


def _is_known() -> bool:
    """Whether the caller holds a token: nobody else may ring an alarm."""
    request = app.current_request
    return request is not None and bool(request.context.get("authorizer"))


def _response(
    body: bytes, status: HTTPStatus, *, kind: str = "application/json", **headers: str
) -> Response:
    said: dict[str, str | list[str]] = {
        "Content-Type": kind,
        "Cache-Control": "no-store",
        **headers,
    }
    return Response(body.decode(), headers=said, status_code=status)


def _problem(error: Exception) -> Response:
    status = status_of(error)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR and _is_known():
        metrics.add_metric(ServiceMetric.FAULTS, "Count", 1)
    note(error)
    wait = retry_after(error)
    headers = {} if wait is None else {"Retry-After": wait}
    problem = Problem(title=status.phrase, status=int(status), detail=detail_of(error))
    return _response(encode(problem), status, kind=_PROBLEM, **headers)
