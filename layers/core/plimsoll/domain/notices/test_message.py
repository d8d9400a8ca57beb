"""Auto Scaling's test notification: sent once when a hook is given a target. Acknowledge and drop.

It says so in `Event` or in `LifecycleTransition`, flat or inside the detail of an event.
https://docs.aws.amazon.com/autoscaling/ec2/userguide/prepare-for-lifecycle-notifications.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final

from plimsoll.domain.notices.decision import Decision, nothing
from plimsoll.domain.notices.envelope import Opened

_SAID: Final = "autoscaling:TEST_NOTIFICATION"


@dataclass(frozen=True, slots=True, kw_only=True)
class TestNotification:
    """A hook's queue works."""

    __test__: ClassVar[bool] = False  # its name makes pytest curious

    kind: ClassVar[str] = "test-notification"

    group: str | None
    time: datetime
    """When it was received: nothing hangs on its own time."""

    @property
    def decision(self) -> Decision:
        """Nothing: it arrived."""
        return nothing("Auto Scaling tests the queue of a hook")


def recognised(opened: Opened, *, received: datetime) -> TestNotification | None:
    """Tell a test from a lifecycle action, wherever it says that it is one."""
    detail = opened.fields["detail"].value
    for body in (opened.fields.value, detail):
        if isinstance(body, Mapping) and _SAID in (
            body.get("Event"),
            body.get("LifecycleTransition"),
        ):
            group = body.get("AutoScalingGroupName")
            return TestNotification(
                group=group[:256] if isinstance(group, str) else None, time=received
            )
    return None
