"""What is written down about a canary, so that whoever sent it sees that it arrived.

It lies among the reports, under a cluster of its own: it needs no table and no right beyond those
that a notice needs anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from plimsoll.domain.notices import Canary
from plimsoll.domain.reports.report import Report

CANARY_REPORTS: Final = "*canaries"
"""The cluster that echoes are kept under. No EKS cluster can have the name."""


def canary_echo(canary: Canary, name: str, *, seen: datetime) -> Report:
    """Return what to write down about a canary of that name."""
    return Report(
        interruption=_key(name),
        cluster=CANARY_REPORTS,
        node="",
        kind=canary.kind,
        noticed=canary.time,
        closed=seen,
    )


def canary_seen(reports: Sequence[Report], name: str) -> datetime | None:
    """Return when the canary of that name was seen; None when it was not."""
    return next((r.closed for r in reports if r.interruption == _key(name)), None)


def _key(name: str) -> str:
    return f"canary@{name}"
