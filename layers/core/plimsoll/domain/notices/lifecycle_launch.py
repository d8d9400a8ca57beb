"""EC2 Instance-launch Lifecycle Action: a new instance waits until somebody says it is ready."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, override

from plimsoll.domain.notices.decision import Decision, nothing
from plimsoll.domain.notices.envelope import Envelope
from plimsoll.domain.notices.lifecycle import LifecycleNotice, read


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleLaunch(LifecycleNotice):
    """A group is launching an instance."""

    kind: ClassVar[str] = "lifecycle-launch"

    @property
    @override
    def decision(self) -> Decision:
        """Nothing: it comes."""
        return nothing(f"{self.group} launches it")


def parse(event: Envelope) -> tuple[LifecycleLaunch]:
    """Read the one notice of the event."""
    return (LifecycleLaunch(**read(event, transition="autoscaling:EC2_INSTANCE_LAUNCHING")),)
