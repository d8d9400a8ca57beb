"""The description of the API in OpenAPI 3.1, made of the types that go over the wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import msgspec

from plimsoll_service.domain.access import Role
from plimsoll_service.services.audit_reads import FILTERS as AUDIT_FILTERS
from plimsoll_service.services.clusters import (
    AGENT_FILTERS,
    CLUSTER_FILTERS,
    MEMBER_FILTERS,
)
from plimsoll_service.services.instructions import LOG_FILTERS
from plimsoll_service.services.paging import query_schemas
from plimsoll_service.services.recommendation_pages import RECOMMENDATION_FILTERS
from plimsoll_service.wire.access import (
    Accepted,
    Enrolled,
    Enrolment,
    Granted,
    Problem,
    TokenRequest,
)
from plimsoll_service.wire.advice import Advice, DismissRequest, Recommendation, RecommendationPage
from plimsoll_service.wire.audit import AuditRows
from plimsoll_service.wire.clusters import Agents, Clusters, Members
from plimsoll_service.wire.gpu import ClassDays
from plimsoll_service.wire.instruction_log import InstructionRows, SignedRow
from plimsoll_service.wire.instructions import Instructions, Results
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
from plimsoll_service.wire.savings import SavingsHistory
from plimsoll_service.wire.snapshot import Snapshot
from plimsoll_service.wire.taints import Forwarded, TaintedInstances
from plimsoll_service.wire.views import Interruptions, Periods, Pools, Workloads


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What can be asked."""

    name: str
    method: str
    path: str
    summary: str
    role: Role | None
    """Who may ask; None: anybody."""
    answer: type[msgspec.Struct]
    body: type[msgspec.Struct] | None = None
    status: int = 200
    compressed: bool = False
    """Whether the body is gzip."""
    versioned: bool = False
    """Whether it names, by If-Match, the version that was seen."""
    query: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """The schema of each parameter of the query; none is required."""


_ID: Final = "/v1/clusters/{cluster}"
_A, _P = Role.AGENT, Role.PERSON
OPERATIONS: Final = (
    Operation(
        name="enrol",
        method="POST",
        path="/v1/enrolments",
        role=None,
        body=Enrolment,
        answer=Enrolled,
        status=201,
        summary="Admit a key by a join token",
    ),
    Operation(
        name="grant",
        method="POST",
        path="/v1/token",
        role=None,
        body=TokenRequest,
        answer=Granted,
        summary="Exchange a signed assertion for an access token",
    ),
    Operation(
        name="renew",
        method="POST",
        path=f"{_ID}/token",
        role=_A,
        answer=Granted,
        summary="Renew an access token before it ends",
    ),
    Operation(
        name="push_snapshot",
        method="POST",
        path=f"{_ID}/snapshots",
        role=_A,
        body=Snapshot,
        answer=Accepted,
        status=202,
        compressed=True,
        summary="Push a snapshot",
    ),
    Operation(
        name="forward_taints",
        method="POST",
        path=f"{_ID}/taints",
        role=_A,
        body=TaintedInstances,
        answer=Forwarded,
        status=202,
        summary="Forward interruption taints of other handlers",
    ),
    Operation(
        name="forward_queue_change",
        method="POST",
        path=f"{_ID}/queue-changes",
        role=_A,
        answer=Forwarded,
        status=202,
        summary="Say that a Job of a batch queue changed",
    ),
    Operation(
        name="poll_instructions",
        method="GET",
        path=f"{_ID}/instructions",
        role=_A,
        answer=Instructions,
        summary="Read what waits for the executor",
    ),
    Operation(
        name="post_results",
        method="POST",
        path=f"{_ID}/results",
        role=_A,
        body=Results,
        answer=Results,
        summary="Report what became of instructions",
    ),
    Operation(
        name="list_clusters",
        method="GET",
        path="/v1/clusters",
        role=_P,
        answer=Clusters,
        query=query_schemas(CLUSTER_FILTERS),
        summary="Read the clusters of the tenant",
    ),
    Operation(
        name="list_agents",
        method="GET",
        path="/v1/agents",
        role=_P,
        answer=Agents,
        query=query_schemas(AGENT_FILTERS),
        summary="Read what the agents of the tenant tell of themselves",
    ),
    Operation(
        name="list_members",
        method="GET",
        path="/v1/members",
        role=_P,
        answer=Members,
        query=query_schemas(MEMBER_FILTERS),
        summary="Read who was let in to the tenant",
    ),
    Operation(
        name="read_savings",
        method="GET",
        path=f"{_ID}/savings",
        role=_P,
        answer=Advice,
        summary="Read the cluster as it is, and as it could be",
    ),
    Operation(
        name="read_savings_history",
        method="GET",
        path=f"{_ID}/savings/history",
        role=_P,
        answer=SavingsHistory,
        query={"before": {"type": "string", "format": "date-time"}},
        summary="Read what advice was foreseen to save beside what it saved, in the 92 days before a time",
    ),
    Operation(
        name="read_workloads",
        method="GET",
        path=f"{_ID}/workloads",
        role=_P,
        answer=Workloads,
        summary="Read the workloads, and what they use",
    ),
    Operation(
        name="read_interruptions",
        method="GET",
        path=f"{_ID}/interruptions",
        role=_P,
        answer=Interruptions,
        summary="Read the nodes that are marked as going",
    ),
    Operation(
        name="read_hours",
        method="GET",
        path=f"{_ID}/hours",
        role=_P,
        answer=Periods,
        query={"before": {"type": "string", "format": "date-time"}},
        summary="Read the hours of the week before a time",
    ),
    Operation(
        name="read_days",
        method="GET",
        path=f"{_ID}/days",
        role=_P,
        answer=Periods,
        query={"before": {"type": "string", "format": "date-time"}},
        summary="Read the days of the 92 days before a time",
    ),
    Operation(
        name="read_pools",
        method="GET",
        path=f"{_ID}/pools",
        role=_P,
        answer=Pools,
        summary="Read the capacity pools",
    ),
    Operation(
        name="read_gpu",
        method="GET",
        path=f"{_ID}/gpu",
        role=_P,
        answer=ClassDays,
        query={
            "days": {"type": "integer", "minimum": 1, "maximum": 35, "default": 7},
            "next": {
                "type": "string",
                "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}#[0-9a-f]{32}$",
                "description": "`next` of the page before",
            },
        },
        summary="Read the use of GPUs, by class of workload and day",
    ),
    Operation(
        name="read_recommendations",
        method="GET",
        path=f"{_ID}/recommendations",
        role=_P,
        answer=RecommendationPage,
        query=query_schemas(RECOMMENDATION_FILTERS),
        summary="Read the recommendations",
    ),
    Operation(
        name="accept_recommendation",
        method="POST",
        path=f"{_ID}/recommendations/{{recommendation}}/accept",
        role=_P,
        answer=Recommendation,
        versioned=True,
        summary="Accept a recommendation",
    ),
    Operation(
        name="dismiss_recommendation",
        method="POST",
        path=f"{_ID}/recommendations/{{recommendation}}/dismiss",
        role=_P,
        body=DismissRequest,
        answer=Recommendation,
        versioned=True,
        summary="Dismiss a recommendation until a time",
    ),
    Operation(
        name="cancel_recommendation",
        method="POST",
        path=f"{_ID}/recommendations/{{recommendation}}/cancel",
        role=_P,
        answer=Recommendation,
        versioned=True,
        summary="Take back an acceptance that is not signed, or a dismissal",
    ),
    Operation(
        name="read_instruction_log",
        method="GET",
        path=f"{_ID}/instruction-log",
        role=_P,
        answer=InstructionRows,
        query=query_schemas(LOG_FILTERS),
        summary="Read the instructions that were signed, newest first",
    ),
    Operation(
        name="read_instruction",
        method="GET",
        path=f"{_ID}/instruction-log/{{instruction}}",
        role=_P,
        answer=SignedRow,
        summary="Read an instruction with the bytes that were signed",
    ),
    Operation(
        name="read_audit",
        method="GET",
        path="/v1/audit",
        role=_P,
        answer=AuditRows,
        query=query_schemas(AUDIT_FILTERS),
        summary="Read who did what, newest first; for admins",
    ),
    Operation(
        name="read_issuer",
        method="GET",
        path="/v1/issuer",
        role=None,
        answer=Issuer,
        summary="Read where people sign in",
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
        summary="Exchange what a sign-in brought for a session",
    ),
    Operation(
        name="end_session",
        method="DELETE",
        path="/v1/session",
        role=_P,
        answer=Ended,
        summary="End the session that the request comes by",
    ),
    Operation(
        name="read_people",
        method="GET",
        path="/v1/people",
        role=_P,
        answer=People,
        summary="Read who has access to the tenant (admin)",
    ),
    Operation(
        name="end_access",
        method="DELETE",
        path="/v1/people/{access}",
        role=_P,
        answer=Ended,
        summary="End a session, or revoke an API token (admin)",
    ),
    Operation(
        name="make_token",
        method="POST",
        path="/v1/tokens",
        role=_P,
        body=NewToken,
        answer=MadeToken,
        status=201,
        summary="Make an API token (admin)",
    ),
)
"""All but that which returns this description."""
_IF_MATCH: Final = {
    "name": "If-Match",
    "in": "header",
    "required": True,
    "description": "the version of the recommendation that was seen, in quotes",
    "schema": {"type": "string", "pattern": '^"[0-9]{1,15}"$'},
}
_REFUSALS: Final = (400, 401, 403, 404, 409, 412, 413, 415, 428, 429, 503)


@cache
def document() -> dict[str, Any]:
    """Return the description."""
    types = {t for o in OPERATIONS for t in (o.body, o.answer) if t is not None} | {Problem}
    ordered = sorted(types, key=lambda t: t.__name__)
    schemas, components = msgspec.json.schema_components(
        ordered, ref_template="#/components/schemas/{name}"
    )
    named = dict(zip(ordered, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(
            operation, named
        )
    return {
        "openapi": "3.1.0",
        "info": {"title": "Plimsoll's optimisation service", "version": "1"},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(operation: Operation, named: dict[type[msgspec.Struct], Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [
            {
                "name": name,
                "in": "path",
                "required": True,
                "schema": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 64,
                    "pattern": "^[A-Za-z0-9-]+$",
                    "description": f"the id of the {name}",
                },
            }
            for name in ("cluster", "recommendation", "instruction", "access")
            if f"{{{name}}}" in operation.path
        ]
        + [
            {"name": name, "in": "query", "schema": schema}
            for name, schema in operation.query.items()
        ]
        + ([_IF_MATCH] if operation.versioned else []),
        "responses": {
            str(operation.status): _json("application/json", named[operation.answer], "Done"),
            **{
                str(s): _json("application/problem+json", named[Problem], "Refused")
                for s in _REFUSALS
            },
        },
    }
    if operation.role is not None:
        found["security"] = [{"token": []}]
    if operation.body is not None:
        body = named[operation.body]
        if operation.compressed:
            body = {
                "type": "string",
                "format": "binary",
                "description": "gzip of the JSON document",
                "x-plimsoll-document": body,
            }
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return found


def _json(kind: str, schema: Any, words: str) -> dict[str, Any]:
    return {"description": words, "content": {kind: {"schema": schema}}}
