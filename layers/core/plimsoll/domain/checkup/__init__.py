"""What is wrong with an installation, decided from what was read of it, each with its cure."""

from __future__ import annotations

from plimsoll.domain.checkup.checks import findings_of
from plimsoll.domain.checkup.facts import Arrival, Facts, Marks, Quota, Right, StackFacts
from plimsoll.domain.checkup.findings import Finding, State

__all__ = [
    "Arrival",
    "Facts",
    "Finding",
    "Marks",
    "Quota",
    "Right",
    "StackFacts",
    "State",
    "findings_of",
]
