"""EC2 Instance State-change Notification: too late for a drain, but proof of a death.

https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitoring-instance-state-changes.html
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final, override

from plimsoll.domain.notices.about import About
from plimsoll.domain.notices.envelope import Envelope

LEAVING: Final = frozenset({"stopping", "shutting-down"})
GONE: Final = frozenset({"stopped", "terminated"})
STATES: Final = frozenset({"pending", "running"}) | LEAVING | GONE


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange(About):
    """An instance changed its state."""

    kind: ClassVar[str] = "state-change"

    state: str

    @property
    @override
    def ends(self) -> datetime | None:
        """At once for an instance that is leaving or gone."""
        return self.time if self.state in LEAVING | GONE else None


def parse(event: Envelope) -> tuple[StateChange]:
    """Read the one notice of the event."""
    state = event.detail["state"].required()
    if state not in STATES:
        known = ", ".join(sorted(STATES))
        raise event.detail["state"].wrong(f"one of {known}")
    return (StateChange(**event.about(event.detail["instance-id"].instance()), state=state),)
