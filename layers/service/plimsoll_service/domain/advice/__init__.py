"""Advice about a cluster: when it is made anew, and the life of a recommendation."""

from __future__ import annotations

from plimsoll_service.domain.advice.advice_requests import (
    AdviceRequest,
    LastAdvice,
    configuration_of,
)
from plimsoll_service.domain.advice.columns import advised_columns, saved_columns
from plimsoll_service.domain.advice.decisions import (
    Decider,
    accepted,
    cancelled,
    dismissed,
    undismissed,
)
from plimsoll_service.domain.advice.recommendations import (
    awaits_instruction,
    instruction_for,
    lapsed,
    merged,
    refused,
    resolved,
)
from plimsoll_service.domain.advice.versions import numbered

__all__ = [
    "AdviceRequest",
    "Decider",
    "LastAdvice",
    "accepted",
    "advised_columns",
    "awaits_instruction",
    "cancelled",
    "configuration_of",
    "dismissed",
    "instruction_for",
    "lapsed",
    "merged",
    "numbered",
    "refused",
    "resolved",
    "saved_columns",
    "undismissed",
]
