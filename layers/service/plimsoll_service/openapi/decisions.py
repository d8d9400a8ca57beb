"""The requests about decisions: recommendations, signed instructions and the audit."""

from __future__ import annotations

from typing import Final

from plimsoll_service.domain.access import Role
from plimsoll_service.openapi.operation import CLUSTER, Operation
from plimsoll_service.services.audit_reads import FILTERS as AUDIT_FILTERS
from plimsoll_service.services.instructions import LOG_FILTERS
from plimsoll_service.services.paging import query_schemas
from plimsoll_service.services.recommendation_pages import RECOMMENDATION_FILTERS
from plimsoll_service.wire.advice import DismissRequest, Recommendation, RecommendationPage
from plimsoll_service.wire.audit import AuditRows
from plimsoll_service.wire.instruction_log import InstructionRows, SignedRow

OPERATIONS: Final = (
    Operation(
        name="read_recommendations",
        method="GET",
        path=f"{CLUSTER}/recommendations",
        role=Role.PERSON,
        answer=RecommendationPage,
        query=query_schemas(RECOMMENDATION_FILTERS),
        summary="List the recommendations, the one that saves most first",
    ),
    Operation(
        name="accept_recommendation",
        method="POST",
        path=f"{CLUSTER}/recommendations/{{recommendation}}/accept",
        role=Role.PERSON,
        answer=Recommendation,
        versioned=True,
        summary="Accept a recommendation",
    ),
    Operation(
        name="dismiss_recommendation",
        method="POST",
        path=f"{CLUSTER}/recommendations/{{recommendation}}/dismiss",
        role=Role.PERSON,
        body=DismissRequest,
        answer=Recommendation,
        versioned=True,
        summary="Dismiss a recommendation until a time",
    ),
    Operation(
        name="cancel_recommendation",
        method="POST",
        path=f"{CLUSTER}/recommendations/{{recommendation}}/cancel",
        role=Role.PERSON,
        answer=Recommendation,
        versioned=True,
        summary="Take back an acceptance that is not signed, or a dismissal",
    ),
    Operation(
        name="read_instruction_log",
        method="GET",
        path=f"{CLUSTER}/instruction-log",
        role=Role.PERSON,
        answer=InstructionRows,
        query=query_schemas(LOG_FILTERS),
        summary="List the signed instructions, newest first",
    ),
    Operation(
        name="read_instruction",
        method="GET",
        path=f"{CLUSTER}/instruction-log/{{instruction}}",
        role=Role.PERSON,
        answer=SignedRow,
        summary="Read a signed instruction, with the signed bytes",
    ),
    Operation(
        name="read_audit",
        method="GET",
        path="/v1/audit",
        role=Role.PERSON,
        answer=AuditRows,
        query=query_schemas(AUDIT_FILTERS),
        summary="List the audit rows, newest first (admin)",
    ),
)
