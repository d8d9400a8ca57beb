"""EC2 Spot Instance Interruption Warning: two minutes, counted from the event's own time.

https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Final, override

from plimsoll.domain.notices.about import About
from plimsoll.domain.notices.decision import Decision, clock_text, drains
from plimsoll.domain.notices.envelope import Envelope

LEAD: Final = timedelta(seconds=120)
"""The event names no end: the instance goes this long after the event's time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotInterruption(About):
    """EC2 takes a spot instance back."""

    kind: ClassVar[str] = "spot-interruption"

    action: str
    """`terminate`, `stop` or `hibernate`; an action we do not know is given the usual two minutes."""

    @property
    @override
    def ends(self) -> datetime:
        """Two minutes after the event; at once for hibernation, which begins with the notice."""
        return self.time if self.action == "hibernate" else self.time + LEAD

    @property
    @override
    def decision(self) -> Decision:
        """A drain, whatever spot does to the instance."""
        if self.action == "hibernate":
            return drains("spot hibernates it from now on, without lead time")
        return drains(f"spot reclaims it ({self.action}) at {clock_text(self.ends)}")


def parse(event: Envelope) -> tuple[SpotInterruption]:
    """Read the one notice of the event."""
    about = event.about(event.detail["instance-id"].instance())
    return (SpotInterruption(**about, action=event.detail["instance-action"].required(limit=64)),)
