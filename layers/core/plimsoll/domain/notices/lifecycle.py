"""What the two lifecycle actions of an Auto Scaling group have in common.

The same body is the `detail` of an event and the whole of a message that a hook sends straight to
its queue; a group may do both, so the token of the action, not the event, tells copies apart.
https://docs.aws.amazon.com/autoscaling/ec2/userguide/prepare-for-lifecycle-notifications.html
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from plimsoll.domain.notices.about import About, Common
from plimsoll.domain.notices.envelope import Envelope

WARM_POOL: Final = "WarmPool"


class LifecycleFields(Common):
    """The fields that both kinds of lifecycle notice are made of."""

    group: str
    hook: str
    token: str | None
    destination: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleNotice(About):
    """An instance waits in a lifecycle action, until it is completed or times out."""

    group: str
    hook: str
    token: str | None
    """Absent: the action is completed by its instance instead."""
    destination: str | None = None
    """Where the instance goes to: `EC2`, `AutoScalingGroup` or `WarmPool`."""


def read(event: Envelope, *, transition: str) -> LifecycleFields:
    """Read the action, which must be of the kind that the event declares."""
    detail = event.detail
    if detail["LifecycleTransition"].optional() not in (None, transition):
        raise detail["LifecycleTransition"].wrong(f"{transition} in this event")
    about = event.about(detail["EC2InstanceId"].instance())
    token = detail["LifecycleActionToken"].optional()
    about["id"] = token or event.id
    return {
        **about,
        "group": detail["AutoScalingGroupName"].required(),
        "hook": detail["LifecycleHookName"].required(),
        "token": token,
        "destination": detail["Destination"].optional(),
    }
