"""Advice about a cluster: when it is made anew, and the life of a recommendation."""

from __future__ import annotations

from plimsoll_service.domain.advice.advice_requests import (
    AdviceRequest,
    LastAdvice,
    configuration_of,
)
from plimsoll_service.domain.advice.columns import advised_columns
from plimsoll_service.domain.advice.recommendations import (
    accepted,
    awaits_instruction,
    instruction_for,
    lapsed,
    merged,
    refused,
    resolved,
)

__all__ = [
    "AdviceRequest",
    "LastAdvice",
    "accepted",
    "advised_columns",
    "awaits_instruction",
    "configuration_of",
    "instruction_for",
    "lapsed",
    "merged",
    "refused",
    "resolved",
]
