"""Interruptions: the notices of one instance, merged into one record with one deadline."""

from __future__ import annotations

from plimsoll.domain.interruptions.decision import actionable, of_former_life
from plimsoll.domain.interruptions.merging import in_this_life, merge
from plimsoll.domain.interruptions.model import (
    ADVICE,
    MARGIN,
    NEAR,
    NEVER,
    PER_KIND,
    SCALE_DOWN,
    URGENCY,
    Interruption,
    NoticeRecord,
    Phase,
    is_near,
    join,
    marked,
    urgency,
)
from plimsoll.domain.interruptions.record import VERSION, NewerRecord, from_record, to_record
from plimsoll.domain.notices.decision import Decision, Effect

__all__ = [
    "ADVICE",
    "MARGIN",
    "NEAR",
    "NEVER",
    "PER_KIND",
    "SCALE_DOWN",
    "URGENCY",
    "VERSION",
    "Decision",
    "Effect",
    "Interruption",
    "NewerRecord",
    "NoticeRecord",
    "Phase",
    "actionable",
    "from_record",
    "in_this_life",
    "is_near",
    "join",
    "marked",
    "merge",
    "of_former_life",
    "to_record",
    "urgency",
]
