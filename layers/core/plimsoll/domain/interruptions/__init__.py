"""Interruptions: the notices of one instance, merged into one record with one deadline."""

from __future__ import annotations

from plimsoll.domain.interruptions.lifecycle_hooks import (
    LifecycleHook,
    as_told,
    kept_up,
    needs_heartbeat,
    waits_for_hooks,
    with_ends,
)
from plimsoll.domain.interruptions.maintenance import MaintenanceWindow
from plimsoll.domain.interruptions.merging import actionable, in_this_life, merge
from plimsoll.domain.interruptions.model import (
    ADVICE,
    MARGIN,
    NEAR,
    NEVER,
    SCALE_DOWN,
    URGENCY,
    Interruption,
    NoticeRecord,
    is_near,
    marked,
    urgency,
)
from plimsoll.domain.interruptions.record import NewerRecord, from_record, to_record
from plimsoll.domain.interruptions.response_policy import (
    DAY,
    FOREIGN_CORDON,
    HOUR,
    Policy,
    Response,
    usual_response,
)

__all__ = [
    "ADVICE",
    "DAY",
    "FOREIGN_CORDON",
    "HOUR",
    "MARGIN",
    "NEAR",
    "NEVER",
    "SCALE_DOWN",
    "URGENCY",
    "Interruption",
    "LifecycleHook",
    "MaintenanceWindow",
    "NewerRecord",
    "NoticeRecord",
    "Policy",
    "Response",
    "actionable",
    "as_told",
    "from_record",
    "in_this_life",
    "is_near",
    "kept_up",
    "marked",
    "merge",
    "needs_heartbeat",
    "to_record",
    "urgency",
    "usual_response",
    "waits_for_hooks",
    "with_ends",
]
