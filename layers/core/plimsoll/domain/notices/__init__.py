"""Notices: what AWS tells about instances that are about to go, parsed once into our own words."""

from __future__ import annotations

from plimsoll.domain.notices.about import About
from plimsoll.domain.notices.canary import (
    CANARY_DETAIL_TYPE,
    CANARY_SOURCE,
    SCHEDULED_CANARY,
    Canary,
    canary_word,
)
from plimsoll.domain.notices.decision import Decision, Effect, Unknown, clock_text, nothing
from plimsoll.domain.notices.envelope import BODY_LIMIT_BYTES, open_envelope
from plimsoll.domain.notices.health import Change, HealthScheduledChange
from plimsoll.domain.notices.lifecycle import HOOK_TIMEOUT, LifecycleTerminate
from plimsoll.domain.notices.rebalance import RebalanceRecommendation
from plimsoll.domain.notices.registry import DRILL_SOURCE, TABLE, InstanceNotice, Notice, parse
from plimsoll.domain.notices.spot import SpotInterruption
from plimsoll.domain.notices.state_change import GONE, LEAVING, StateChange
from plimsoll.domain.notices.taint import (
    AGENT_ID,
    SERVICE_SOURCE,
    TAINT_DETAIL_TYPE,
    InterruptionTaint,
)
from plimsoll.domain.notices.zonal_shift import Cause, ZonalShift

__all__ = [
    "AGENT_ID",
    "BODY_LIMIT_BYTES",
    "CANARY_DETAIL_TYPE",
    "CANARY_SOURCE",
    "DRILL_SOURCE",
    "GONE",
    "HOOK_TIMEOUT",
    "LEAVING",
    "SCHEDULED_CANARY",
    "SERVICE_SOURCE",
    "TABLE",
    "TAINT_DETAIL_TYPE",
    "About",
    "Canary",
    "Cause",
    "Change",
    "Decision",
    "Effect",
    "HealthScheduledChange",
    "InstanceNotice",
    "InterruptionTaint",
    "LifecycleTerminate",
    "Notice",
    "RebalanceRecommendation",
    "SpotInterruption",
    "StateChange",
    "Unknown",
    "ZonalShift",
    "canary_word",
    "clock_text",
    "nothing",
    "open_envelope",
    "parse",
]
