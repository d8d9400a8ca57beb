"""Zonal shifts: which zones traffic is sent away from, and what follows for their nodes and pods."""

from __future__ import annotations

from plimsoll.domain.zones.shift_events import (
    LONGEST_SHIFT,
    ShiftEvent,
    inferred_events,
    newest_events,
    shift_report,
    shifted_zones,
)
from plimsoll.domain.zones.zonal_shifts import (
    LEAVING,
    elsewhere,
    emptied_nodes,
    frozen_zones,
    has_shift_taint,
    left_for_zone,
)

__all__ = [
    "LEAVING",
    "LONGEST_SHIFT",
    "ShiftEvent",
    "elsewhere",
    "emptied_nodes",
    "frozen_zones",
    "has_shift_taint",
    "inferred_events",
    "left_for_zone",
    "newest_events",
    "shift_report",
    "shifted_zones",
]
