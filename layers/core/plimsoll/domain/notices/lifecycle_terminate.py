"""EC2 Instance-terminate Lifecycle Action: a group takes an instance out, and waits for its hook."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Final, override

from plimsoll.domain.notices.envelope import Envelope
from plimsoll.domain.notices.lifecycle import LifecycleNotice, read

HOOK_TIMEOUT: Final = timedelta(minutes=5)
"""How long the hook is believed to wait when nobody says: the event does not, and a guess too short
only hurries. (A hook made without a timeout waits an hour.)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleTerminate(LifecycleNotice):
    """A group is about to terminate an instance."""

    kind: ClassVar[str] = "lifecycle-terminate"

    timeout: timedelta = HOOK_TIMEOUT
    """The hook's heartbeat timeout: whoever has read the hook replaces the default."""

    @property
    @override
    def ends(self) -> datetime:
        """When the group stops waiting."""
        return self.time + self.timeout


def parse(event: Envelope) -> tuple[LifecycleTerminate]:
    """Read the one notice of the event."""
    return (LifecycleTerminate(**read(event, transition="autoscaling:EC2_INSTANCE_TERMINATING")),)
