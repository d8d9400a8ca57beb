"""What is wrong with an installation, decided from what was read of it, each with its cure."""

from __future__ import annotations

from plimsoll.domain.checkup.checks import findings_of
from plimsoll.domain.checkup.facts import (
    Arrival,
    Facts,
    GroupSettings,
    Queue,
    Quota,
    Right,
    StackFacts,
    Trial,
    TrialResult,
)
from plimsoll.domain.checkup.findings import Finding, State

__all__ = [
    "Arrival",
    "Facts",
    "Finding",
    "GroupSettings",
    "Queue",
    "Quota",
    "Right",
    "StackFacts",
    "State",
    "Trial",
    "TrialResult",
    "findings_of",
]
