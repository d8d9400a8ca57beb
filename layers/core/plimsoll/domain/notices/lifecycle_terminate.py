"""EC2 Instance-terminate Lifecycle Action: a group takes an instance out, and waits for its hook."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Final, override

from plimsoll.domain.notices.decision import Decision, drains
from plimsoll.domain.notices.envelope import Envelope
from plimsoll.domain.notices.lifecycle import WARM_POOL, LifecycleNotice, read

HOOK_TIMEOUT: Final = timedelta(minutes=5)
"""How long the hook is believed to wait until it has been read: the event does not say. (A hook made
without a timeout waits an hour.)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleTerminate(LifecycleNotice):
    """A group is about to terminate an instance."""

    kind: ClassVar[str] = "lifecycle-terminate"

    @property
    @override
    def ends(self) -> datetime:
        """When the group is believed to stop waiting."""
        return self.time + HOOK_TIMEOUT

    @property
    @override
    def decision(self) -> Decision:
        """A drain, for which the hook waits."""
        pooled = self.destination == WARM_POOL
        verb = "returns it to its warm pool" if pooled else "terminates it"
        return drains(f"{self.group} {verb}; the hook {self.hook} waits")


def parse(event: Envelope) -> tuple[LifecycleTerminate]:
    """Read the one notice of the event."""
    return (LifecycleTerminate(**read(event, transition="autoscaling:EC2_INSTANCE_TERMINATING")),)
