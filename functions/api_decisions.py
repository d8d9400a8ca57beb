"""The requests about decisions: recommendations, signed instructions and the audit."""

from __future__ import annotations

from typing import Final

import msgspec

from functions.api_requests import ApiRequest
from plimsoll_service import bootstrap
from plimsoll_service.domain.advice import awaits_instruction
from plimsoll_service.services.audit_reads import FILTERS as AUDIT_FILTERS
from plimsoll_service.services.audit_reads import audit_rows
from plimsoll_service.services.decisions import accept, cancel, dismiss
from plimsoll_service.services.instructions import (
    LOG,
    LOG_FILTERS,
    instruction_rows,
    signed_instruction,
)
from plimsoll_service.services.recommendation_pages import (
    RECOMMENDATION,
    RECOMMENDATION_FILTERS,
    recommendation_page,
)
from plimsoll_service.wire.advice import DismissRequest
from plimsoll_service.wire.documents import decode


def read_recommendations(asked: ApiRequest, cluster: str) -> msgspec.Struct:
    """List the recommendations, the one that saves most first."""
    data = bootstrap.reads().data(asked.principal(), cluster)
    page = asked.page(RECOMMENDATION, RECOMMENDATION_FILTERS)
    return recommendation_page(data, cluster, page, asked.now)


def accept_recommendation(asked: ApiRequest, cluster: str, recommendation: str) -> msgspec.Struct:
    """Accept a recommendation."""
    person, seen = asked.principal(), asked.version()
    data = bootstrap.reads().for_decision(person, cluster)
    taken = accept(data, cluster, recommendation, by=person, seen=seen, now=asked.now)
    if awaits_instruction(taken):
        asked.ask_for_advice(person, cluster)
    return taken


def dismiss_recommendation(asked: ApiRequest, cluster: str, recommendation: str) -> msgspec.Struct:
    """Dismiss a recommendation until a time."""
    person, seen = asked.principal(), asked.version()
    data = bootstrap.reads().for_decision(person, cluster)
    why = decode(asked.body, DismissRequest)
    return dismiss(data, cluster, recommendation, why, by=person, seen=seen, now=asked.now)


def cancel_recommendation(asked: ApiRequest, cluster: str, recommendation: str) -> msgspec.Struct:
    """Take an acceptance or a dismissal back."""
    person, seen = asked.principal(), asked.version()
    data = bootstrap.reads().for_decision(person, cluster)
    return cancel(data, cluster, recommendation, by=person, seen=seen, now=asked.now)


def read_instruction_log(asked: ApiRequest, cluster: str) -> msgspec.Struct:
    """List the signed instructions, newest first."""
    data = bootstrap.reads().data(asked.principal(), cluster)
    return instruction_rows(data, cluster, asked.page(LOG, LOG_FILTERS), asked.now)


def read_instruction(asked: ApiRequest, cluster: str, instruction: str) -> msgspec.Struct:
    """Return a signed instruction, with the signed bytes."""
    data = bootstrap.reads().data(asked.principal(), cluster)
    return signed_instruction(data, cluster, instruction, asked.now)


def read_audit(asked: ApiRequest) -> msgspec.Struct:
    """List the audit rows, newest first."""
    person = asked.principal()
    data = bootstrap.reads().of_tenant(person)
    return audit_rows(data, person, asked.page("", AUDIT_FILTERS), asked.now)


VIEWS: Final = (
    read_recommendations,
    accept_recommendation,
    dismiss_recommendation,
    cancel_recommendation,
    read_instruction_log,
    read_instruction,
    read_audit,
)
