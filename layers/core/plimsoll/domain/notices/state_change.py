"""EC2 Instance State-change Notification: too late for a drain, but proof of a death.

https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitoring-instance-state-changes.html
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final, override

from plimsoll.domain.notices.about import About
from plimsoll.domain.notices.decision import Decision, Effect, drains, nothing
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

    @property
    @override
    def decision(self) -> Decision:
        """A drain of what is left on an instance that goes; the end of one that is gone."""
        if self.state in GONE:
            return Decision(effect=Effect.GONE, reason=f"it is {self.state}")
        if self.state in LEAVING:
            return drains(f"it is {self.state} already: what is left is to replace its pods")
        return nothing(f"it is {self.state}")


def parse(event: Envelope) -> tuple[StateChange]:
    """Read the one notice of the event."""
    state = event.detail["state"].required()
    if state not in STATES:
        known = ", ".join(sorted(STATES))
        raise event.detail["state"].wrong(f"one of {known}")
    return (StateChange(**event.about(event.detail["instance-id"].instance()), state=state),)
