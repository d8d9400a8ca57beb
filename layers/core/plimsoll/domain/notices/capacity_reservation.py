"""EC2 Capacity Reservation Instance Interruption Warning: borrowed on-demand capacity is wanted back.

The only notice that names its end. `resources` is documented as a bare string, not a list, and the
detail-type in two spellings, depending on the edition of the page: both are taken.
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitor-interruptible-cr.html
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final, override

from plimsoll.domain.notices.about import About
from plimsoll.domain.notices.decision import Decision, clock_text, drains
from plimsoll.domain.notices.envelope import Envelope

DETAIL_TYPES: Final = (
    "EC2 Capacity Reservation Instance Interruption Warning",
    "EC2 Interruptible Capacity Reservation Instance Interruption Warning",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityReservationInterruption(About):
    """EC2 takes back an instance in an interruptible capacity reservation."""

    kind: ClassVar[str] = "capacity-reservation-interruption"

    terminates: datetime
    zone_id: str | None = None
    """The id of the zone (use1-az4), which is not its name."""

    @property
    @override
    def ends(self) -> datetime:
        """The end that the event names."""
        return self.terminates

    @property
    @override
    def decision(self) -> Decision:
        """A drain until the end that the event names."""
        return drains(f"its capacity reservation is reclaimed at {clock_text(self.ends)}")


def parse(event: Envelope) -> tuple[CapacityReservationInterruption]:
    """Read the one notice of the event."""
    detail = event.detail
    return (
        CapacityReservationInterruption(
            **event.about(detail["instance-id"].instance()),
            terminates=detail["instance-termination-time"].time(),
            zone_id=detail["azId"].optional(limit=32),
        ),
    )
