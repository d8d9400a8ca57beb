"""The service's API: each path is declared in `service.yaml` and routed here by Chalice.

Who asks comes from the authorizer and never from the request; a request of an agent is signed too.
Everything that is refused is `application/problem+json` (RFC 9457).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from functools import wraps
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from chalice.app import Chalice, Request, Response

from functions.authorizer import known
from functions.refusals import detail_of, note, retry_after, status_of
from plimsoll.domain.errors import (
    BadInput,
    NotFound,
)
from plimsoll.observability import logger, metrics
from plimsoll_service import bootstrap
from plimsoll_service.adapters.signers import is_signed
from plimsoll_service.domain.access import Principal, Role
from plimsoll_service.domain.advice import AdviceRequest, awaits_instruction
from plimsoll_service.domain.errors import (
    Unproven,
    VersionMissing,
)
from plimsoll_service.domain.metrics import ServiceMetric
from plimsoll_service.domain.snapshots import Span
from plimsoll_service.openapi import document
from plimsoll_service.services.access import SignedRequest, refuse_others, refuse_unsigned
from plimsoll_service.services.audit_reads import FILTERS as AUDIT_FILTERS
from plimsoll_service.services.audit_reads import audit_rows
from plimsoll_service.services.clusters import (
    AGENT_FILTERS,
    CLUSTER,
    CLUSTER_FILTERS,
    MEMBER,
    MEMBER_FILTERS,
)
from plimsoll_service.services.decisions import accept, cancel, dismiss
from plimsoll_service.services.instructions import (
    LOG,
    LOG_FILTERS,
    instruction_rows,
    pending,
    report,
    signed_instruction,
)
from plimsoll_service.services.limits import count
from plimsoll_service.services.paging import Filter, PageRequest, page_request
from plimsoll_service.services.people import sign_in
from plimsoll_service.services.reads import time_of
from plimsoll_service.services.recommendation_pages import (
    RECOMMENDATION,
    RECOMMENDATION_FILTERS,
    recommendation_page,
)
from plimsoll_service.services.recommendations import SAVINGS
from plimsoll_service.services.savings import savings_history
from plimsoll_service.services.stored import stored
from plimsoll_service.wire.access import (
    SIGNATURE,
    TIMESTAMP,
    Enrolment,
    Problem,
    TokenRequest,
)
from plimsoll_service.wire.advice import Advice, DismissRequest
from plimsoll_service.wire.documents import Malformed, decode, encode
from plimsoll_service.wire.instructions import Results
from plimsoll_service.wire.people import Issuer, NewToken, SignIn, StartedDevice

app = Chalice(app_name="plimsoll")
FROM_ADDRESS_PER_MINUTE: Final = 120
"""Enrolments, and as many requests for tokens: the agents behind one address may all begin at once."""
_ANY: Final = ["*/*"]
_NAME: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
"""What stands in a path, as the description says: a key of a table has room for it."""
_ETAG: Final = re.compile(r'"([0-9]{1,15})"')
"""A version, as If-Match names it. No weak ones, and no `*`: a decision is about what was seen."""
_PROBLEM: Final = "application/problem+json"
type View = Callable[..., msgspec.Struct]


def answer(status: HTTPStatus = HTTPStatus.OK) -> Callable[[View], Callable[..., Response]]:
    """Answer with what a view returns, as JSON; and with a problem where it raises."""

    def wrapped(view: View) -> Callable[..., Response]:
        @wraps(view)
        def carried_out(**arguments: str) -> Response:
            try:
                for name, value in arguments.items():
                    if _NAME.fullmatch(value) is None:
                        raise Malformed(f"{value[:64]!r} is no {name}")  # noqa: TRY301 - becomes an answer
                return _response(encode(view(**arguments)), status)
            except Exception as error:  # noqa: BLE001 - each becomes an answer; a fault is logged
                return _problem(error)

        return carried_out

    return wrapped


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


@app.route("/v1/enrolments", methods=["POST"], content_types=_ANY)
@answer(HTTPStatus.CREATED)
def enrol() -> msgspec.Struct:
    """Admit a key by a join token."""
    _count_address("enrolments")
    return bootstrap.access().enrol(decode(_body(), Enrolment), bootstrap.clock().now())


@app.route("/v1/token", methods=["POST"], content_types=_ANY)
@answer()
def grant() -> msgspec.Struct:
    """Exchange a signed assertion for an access token."""
    _count_address("assertions")
    return bootstrap.access().grant(decode(_body(), TokenRequest), bootstrap.clock().now())


@app.route("/v1/clusters/{cluster}/token", methods=["POST"], content_types=_ANY)
@answer()
def renew(cluster: str) -> msgspec.Struct:
    """Renew the access token of an agent, apart from the rate that callers without a token share."""
    return bootstrap.access().renew(_agent(cluster), bootstrap.clock().now())


@app.route("/v1/clusters/{cluster}/snapshots", methods=["POST"], content_types=_ANY)
@answer(HTTPStatus.ACCEPTED)
def push_snapshot(cluster: str) -> msgspec.Struct:
    """Take a snapshot in."""
    taken = bootstrap.intake().take(_agent(cluster), _body())
    if taken.left_out:
        facts = {"cluster": cluster, "sequence": taken.accepted, "objects": taken.left_out}
        logger.warning("objects with invalid names left out", extra=facts)
    return taken


@app.route("/v1/clusters/{cluster}/taints", methods=["POST"], content_types=_ANY)
@answer(HTTPStatus.ACCEPTED)
def forward_taints(cluster: str) -> msgspec.Struct:
    """Forward interruption taints of other handlers."""
    return bootstrap.taints().forward(_agent(cluster), _body())


@app.route("/v1/clusters/{cluster}/queue-changes", methods=["POST"], content_types=_ANY)
@answer(HTTPStatus.ACCEPTED)
def forward_queue_change(cluster: str) -> msgspec.Struct:
    """Say that a Job of a batch queue changed."""
    return bootstrap.taints().queue_changed(_agent(cluster))


@app.route("/v1/clusters/{cluster}/instructions", methods=["GET"])
@answer()
def poll_instructions(cluster: str) -> msgspec.Struct:
    """Return what waits for the executor."""
    agent = _agent(cluster)
    return pending(bootstrap.reads().for_executor(agent), cluster)


@app.route("/v1/clusters/{cluster}/results", methods=["POST"], content_types=_ANY)
@answer()
def post_results(cluster: str) -> msgspec.Struct:
    """Write down what became of instructions."""
    agent = _agent(cluster)
    data = bootstrap.reads().for_executor(agent)
    results = decode(_body(), Results)
    # Written before the request for advice: the run that answers it reads the results.
    report(data, cluster, results.results, bootstrap.clock().now())
    _ask_for_advice(agent, cluster)
    return results


@app.route("/v1/clusters", methods=["GET"])
@answer()
def list_clusters() -> msgspec.Struct:
    """Return the clusters of the tenant."""
    return bootstrap.reads().clusters(_principal(), _page(CLUSTER, CLUSTER_FILTERS))


@app.route("/v1/agents", methods=["GET"])
@answer()
def list_agents() -> msgspec.Struct:
    """Return the agents of the tenant."""
    return bootstrap.reads().agents(_principal(), _page(CLUSTER, AGENT_FILTERS))


@app.route("/v1/members", methods=["GET"])
@answer()
def list_members() -> msgspec.Struct:
    """Return who was let in to the tenant."""
    return bootstrap.reads().let_in(_principal(), _page(MEMBER, MEMBER_FILTERS))


@app.route("/v1/clusters/{cluster}/savings", methods=["GET"])
@answer()
def read_savings(cluster: str) -> msgspec.Struct:
    """Return the cluster as it is, and as it could be."""
    found, _ = stored(bootstrap.reads().data(_principal(), cluster), cluster, SAVINGS, Advice)
    if found is None:
        raise NotFound(f"{cluster} was not analysed yet")
    return found


@app.route("/v1/clusters/{cluster}/savings/history", methods=["GET"])
@answer()
def read_savings_history(cluster: str) -> msgspec.Struct:
    """Return what advice was foreseen to save, beside what it saved."""
    data, before = bootstrap.reads().data(_principal(), cluster), _before()
    until = time_of(before) if before else None
    return savings_history(data, cluster, until, bootstrap.clock().now())


@app.route("/v1/clusters/{cluster}/workloads", methods=["GET"])
@answer()
def read_workloads(cluster: str) -> msgspec.Struct:
    """Return the workloads, and what they use."""
    return bootstrap.reads().workloads(_principal(), cluster)


@app.route("/v1/clusters/{cluster}/interruptions", methods=["GET"])
@answer()
def read_interruptions(cluster: str) -> msgspec.Struct:
    """Return the nodes that are marked as going."""
    return bootstrap.reads().interruptions(_principal(), cluster)


@app.route("/v1/clusters/{cluster}/hours", methods=["GET"])
@answer()
def read_hours(cluster: str) -> msgspec.Struct:
    """Return a week of hours."""
    return bootstrap.reads().periods(_principal(), cluster, Span.HOUR, _before())


@app.route("/v1/clusters/{cluster}/days", methods=["GET"])
@answer()
def read_days(cluster: str) -> msgspec.Struct:
    """Return a quarter of days."""
    return bootstrap.reads().periods(_principal(), cluster, Span.DAY, _before())


@app.route("/v1/clusters/{cluster}/pools", methods=["GET"])
@answer()
def read_pools(cluster: str) -> msgspec.Struct:
    """Return the capacity pools."""
    return bootstrap.reads().pools(_principal(), cluster)


@app.route("/v1/clusters/{cluster}/gpu", methods=["GET"])
@answer()
def read_gpu(cluster: str) -> msgspec.Struct:
    """Return the use of GPUs, by class of workload and day."""
    asked = _query()
    days, after = asked.get("days", "7"), asked.get("next", "")
    return bootstrap.reads().gpu(_principal(), cluster, days, after)


@app.route("/v1/clusters/{cluster}/recommendations", methods=["GET"])
@answer()
def read_recommendations(cluster: str) -> msgspec.Struct:
    """Return the recommendations, the one that saves most first."""
    data = bootstrap.reads().data(_principal(), cluster)
    asked = _page(RECOMMENDATION, RECOMMENDATION_FILTERS)
    return recommendation_page(data, cluster, asked, bootstrap.clock().now())


@app.route(
    "/v1/clusters/{cluster}/recommendations/{recommendation}/accept",
    methods=["POST"],
    content_types=_ANY,
)
@answer()
def accept_recommendation(cluster: str, recommendation: str) -> msgspec.Struct:
    """Accept a recommendation."""
    person, seen = _principal(), _seen()
    data = bootstrap.reads().for_decision(person, cluster)
    now = bootstrap.clock().now()
    taken = accept(data, cluster, recommendation, by=person, seen=seen, now=now)
    if awaits_instruction(taken):
        _ask_for_advice(person, cluster)
    return taken


@app.route(
    "/v1/clusters/{cluster}/recommendations/{recommendation}/dismiss",
    methods=["POST"],
    content_types=_ANY,
)
@answer()
def dismiss_recommendation(cluster: str, recommendation: str) -> msgspec.Struct:
    """Dismiss a recommendation until a time."""
    person, seen = _principal(), _seen()
    data = bootstrap.reads().for_decision(person, cluster)
    asked, now = decode(_body(), DismissRequest), bootstrap.clock().now()
    return dismiss(data, cluster, recommendation, asked, by=person, seen=seen, now=now)


@app.route(
    "/v1/clusters/{cluster}/recommendations/{recommendation}/cancel",
    methods=["POST"],
    content_types=_ANY,
)
@answer()
def cancel_recommendation(cluster: str, recommendation: str) -> msgspec.Struct:
    """Take an acceptance or a dismissal back."""
    person, seen = _principal(), _seen()
    data = bootstrap.reads().for_decision(person, cluster)
    now = bootstrap.clock().now()
    return cancel(data, cluster, recommendation, by=person, seen=seen, now=now)


@app.route("/v1/clusters/{cluster}/instruction-log", methods=["GET"])
@answer()
def read_instruction_log(cluster: str) -> msgspec.Struct:
    """Return the instructions that were signed, newest first."""
    data = bootstrap.reads().data(_principal(), cluster)
    return instruction_rows(data, cluster, _page(LOG, LOG_FILTERS), bootstrap.clock().now())


@app.route("/v1/clusters/{cluster}/instruction-log/{instruction}", methods=["GET"])
@answer()
def read_instruction(cluster: str, instruction: str) -> msgspec.Struct:
    """Return an instruction with the bytes that were signed."""
    data = bootstrap.reads().data(_principal(), cluster)
    return signed_instruction(data, cluster, instruction, bootstrap.clock().now())


@app.route("/v1/audit", methods=["GET"])
@answer()
def read_audit() -> msgspec.Struct:
    """Return who did what, newest first."""
    person = _principal()
    data = bootstrap.reads().of_tenant(person)
    return audit_rows(data, person, _page("", AUDIT_FILTERS), bootstrap.clock().now())


@app.route("/v1/issuer", methods=["GET"])
@answer()
def read_issuer() -> msgspec.Struct:
    """Return where people sign in."""
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


@app.route("/v1/devices", methods=["POST"], content_types=_ANY)
@answer(HTTPStatus.CREATED)
def start_device() -> msgspec.Struct:
    """Begin a sign-in by device code."""
    _count_address("devices")
    started = bootstrap.relying_party().begin_device()
    return msgspec.convert(started, StartedDevice, from_attributes=True)


@app.route("/v1/sessions", methods=["POST"], content_types=_ANY)
@answer(HTTPStatus.CREATED)
def begin_session() -> msgspec.Struct:
    """Exchange what a sign-in brought for a session."""
    _count_address("sessions")
    asked = decode(_body(), SignIn)
    return sign_in(bootstrap.relying_party(), bootstrap.sessions(), asked, bootstrap.clock().now())


@app.route("/v1/session", methods=["DELETE"])
@answer()
def end_session() -> msgspec.Struct:
    """End the session that the request came by."""
    return bootstrap.people().sign_out(_principal())


@app.route("/v1/people", methods=["GET"])
@answer()
def read_people() -> msgspec.Struct:
    """Return who has access to the tenant."""
    return bootstrap.people().people(_counted(), bootstrap.clock().now())


@app.route("/v1/people/{access}", methods=["DELETE"])
@answer()
def end_access(access: str) -> msgspec.Struct:
    """End a session, or revoke an API token."""
    return bootstrap.people().end(_counted(), access, bootstrap.clock().now())


@app.route("/v1/tokens", methods=["POST"], content_types=_ANY)
@answer(HTTPStatus.CREATED)
def make_token() -> msgspec.Struct:
    """Make an API token."""
    asked = decode(_body(), NewToken)
    return bootstrap.people().make_token(_counted(), asked, bootstrap.clock().now())


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


def _count_address(what: str) -> None:
    """Count a request of nobody yet against the limit of the address that it comes from."""
    address = _request().context["identity"]["sourceIp"]
    now = bootstrap.clock().now()
    count(bootstrap.members(), address, what, most=FROM_ADDRESS_PER_MINUTE, now=now)


def _principal() -> Principal:
    """Return who asks, as the authorizer says."""
    request = _request()
    # The authorizer checked the token of this request, and sees no body: the agent's
    # signature is checked here.
    principal = known(request.context["authorizer"])
    refuse_unsigned(principal, _signed(request), is_signed, bootstrap.clock().now())
    return principal


def _counted() -> Principal:
    """Return who asks, counted against the reads of their tenant."""
    person = _principal()
    bootstrap.reads().of_tenant(person)
    return person


def _ask_for_advice(of: Principal, cluster: str) -> None:
    """Have what was written seen at once. Where that is refused, so is the request: it may come again."""
    request = AdviceRequest(tenant=of.tenant, cluster=cluster, at=bootstrap.clock().now())
    bootstrap.advice_queue().send([request])


def _agent(cluster: str) -> Principal:
    principal = _principal()
    refuse_others(principal, cluster, Role.AGENT)
    return principal


def _before() -> str | None:
    return _query().get("before")


def _page(prefix: str, filters: Mapping[str, Filter]) -> PageRequest:
    return page_request(_query(), prefix=prefix, filters=filters)


def _seen() -> int:
    """Return the version of the recommendation that whoever decides has seen."""
    said = _request().headers.get("If-Match", "")
    if not said:
        raise VersionMissing('name the version that you saw, as in the header If-Match: "7"')
    found = _ETAG.fullmatch(said)
    if found is None:
        raise Malformed(f'{said[:64]!r} names no version: it is like If-Match: "7"')
    return int(found[1])


def _query() -> Mapping[str, str]:
    query: Mapping[str, str] = _request().to_dict().get("query_params") or {}
    return query


def _signed(request: Request) -> SignedRequest:
    return SignedRequest(
        method=request.method,
        # API Gateway puts the stage before its own path, and a custom domain what it likes.
        path=request.context["resourcePath"].format(**(request.uri_params or {})),
        query=urlencode(sorted(_query().items())),
        timestamp=request.headers.get(TIMESTAMP, ""),
        signature=_decoded(request.headers.get(SIGNATURE, "")),
        body=_body(),
    )


def _request() -> Request:
    request = app.current_request
    if request is None:
        raise BadInput("this is no request of API Gateway")
    return request


def _is_known() -> bool:
    """Whether the caller holds a token: nobody else may ring an alarm."""
    request = app.current_request
    return request is not None and bool(request.context.get("authorizer"))


def _body() -> bytes:
    body = _request().raw_body
    return body if isinstance(body, bytes) else body.encode()


def _decoded(signature: str) -> bytes:
    try:
        return base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Unproven(f"{SIGNATURE} is no base64") from error


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
