"""Notices: what AWS tells about instances that are about to go, parsed once into our own words."""

from __future__ import annotations

from plimsoll.domain.notices.canary import Canary
from plimsoll.domain.notices.capacity_reservation import CapacityReservationInterruption
from plimsoll.domain.notices.health import HealthScheduledChange
from plimsoll.domain.notices.lifecycle_launch import LifecycleLaunch
from plimsoll.domain.notices.lifecycle_terminate import HOOK_TIMEOUT, LifecycleTerminate
from plimsoll.domain.notices.rebalance import RebalanceRecommendation
from plimsoll.domain.notices.registry import DRILL_SOURCE, TABLE, InstanceNotice, Notice, parse
from plimsoll.domain.notices.spot import SpotInterruption
from plimsoll.domain.notices.state_change import StateChange
from plimsoll.domain.notices.taint import InterruptionTaint
from plimsoll.domain.notices.test_message import TestNotification
from plimsoll.domain.notices.unknown import Unknown
from plimsoll.domain.notices.zonal_shift import ZonalShift

__all__ = [
    "DRILL_SOURCE",
    "HOOK_TIMEOUT",
    "TABLE",
    "Canary",
    "CapacityReservationInterruption",
    "HealthScheduledChange",
    "InstanceNotice",
    "InterruptionTaint",
    "LifecycleLaunch",
    "LifecycleTerminate",
    "Notice",
    "RebalanceRecommendation",
    "SpotInterruption",
    "StateChange",
    "TestNotification",
    "Unknown",
    "ZonalShift",
    "parse",
]
