"""What is wrong with an installation, decided from what was read of it, each with its cure."""

from __future__ import annotations

from plimsoll.domain.checkup.checks import findings_of
from plimsoll.domain.checkup.facts import (
    Arrival,
    Facts,
    Marks,
    Queue,
    Quota,
    Right,
    StackFacts,
    Trial,
    Verdict,
)
from plimsoll.domain.checkup.findings import Finding, State

__all__ = [
    "Arrival",
    "Facts",
    "Finding",
    "Marks",
    "Queue",
    "Quota",
    "Right",
    "StackFacts",
    "State",
    "Trial",
    "Verdict",
    "findings_of",
]
