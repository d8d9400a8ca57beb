"""Zonal shifts of the Application Recovery Controller: traffic leaves a whole zone.

A notice about a zone, by its id (use1-az2), which differs from its name between accounts.
https://docs.aws.amazon.com/r53recovery/latest/dg/eventbridge-zonal-autoshift.html
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final, Literal

from plimsoll.domain.notices.decision import Decision, Effect
from plimsoll.domain.notices.envelope import Envelope

type Cause = Literal["autoshift", "experiment", "practice", "manual"]

DETAIL_TYPES: Final[dict[str, tuple[Cause, bool]]] = {
    "Autoshift In Progress": ("autoshift", True),
    "Autoshift Completed": ("autoshift", False),
    "FIS Experiment Autoshift In Progress": ("experiment", True),
    "FIS Experiment Autoshift Completed": ("experiment", False),
    "FIS Experiment Autoshift Canceled": ("experiment", False),
    "Practice Run Started": ("practice", True),
    "Practice Run Succeeded": ("practice", False),
    "Practice Run Interrupted": ("practice", False),
    "Practice Run Failed": ("practice", False),
    "Manual Shift Started": ("manual", True),
    "Manual Shift Updated": ("manual", True),
    "Manual Shift Canceled": ("manual", False),
}
"""Who shifts, and whether the shift stands after the event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZonalShift:
    """Traffic is sent away from a zone, or comes back to it."""

    kind: ClassVar[str] = "zonal-shift"

    zone_id: str | None
    """Always there for an autoshift; the detail of a practice run or manual shift may lack it."""
    cause: Cause
    active: bool
    time: datetime
    account: str
    region: str | None
    id: str
    resources: tuple[str, ...] = ()
    """The ARNs of what is shifted; none when AWS only tells of an impaired zone."""

    def is_about(self, cluster: str) -> bool:
        """Whether a cluster of its account and region loses a zone by it.

        An autoshift means that AWS takes the zone for impaired, whatever it shifts. What owners shift, in
        practice too, concerns the EKS clusters that are named, and no cluster where these are load balancers
        or Auto Scaling groups.
        """
        return self.cause == "autoshift" or any(
            arn.partition(":cluster/")[2] == cluster and arn.split(":")[2:3] == ["eks"]
            for arn in self.resources
        )

    @property
    def decision(self) -> Decision:
        """Show it."""
        verb = "leaves" if self.active else "returns to"
        reason = f"{self.cause}: traffic {verb} the zone {self.zone_id or '(not named)'}"
        return Decision(effect=Effect.SHOW, reason=reason)


def parse(event: Envelope) -> tuple[ZonalShift]:
    """Read the one notice of the event."""
    cause, active = DETAIL_TYPES[event.detail_type]
    away = event.detail["metadata"]["awayFrom"]
    zone_id = away.optional(limit=32)
    if zone_id is None and cause == "autoshift":
        raise away.wrong("the id of a zone")
    return (
        ZonalShift(
            zone_id=zone_id,
            cause=cause,
            active=active,
            time=event.time,
            account=event.account,
            region=event.region,
            id=event.id,
            resources=event.resources,
        ),
    )
