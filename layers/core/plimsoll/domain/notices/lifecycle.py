"""What the two lifecycle actions of an Auto Scaling group have in common.

The same body is the `detail` of an event and the whole of a message that a hook sends straight to
its queue; a group may do both, so the token of the action, not the event, tells copies apart.
https://docs.aws.amazon.com/autoscaling/ec2/userguide/prepare-for-lifecycle-notifications.html
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from plimsoll.domain.errors import BadInput
from plimsoll.domain.notices.about import About, Common
from plimsoll.domain.notices.envelope import Envelope
from plimsoll.domain.notices.fields import clip

METADATA_LIMIT: Final = 4096
WARM_POOL: Final = "WarmPool"


class LifecycleFields(Common):
    """The fields that both kinds of lifecycle notice are made of."""

    group: str
    hook: str
    token: str | None
    metadata: str | None
    origin: str | None
    destination: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleNotice(About):
    """An instance waits in a lifecycle action, until it is completed or times out."""

    group: str
    hook: str
    token: str | None
    """Absent: the action is completed by its instance instead."""
    metadata: str | None = None
    """Free words of whoever made the hook."""
    origin: str | None = None
    destination: str | None = None
    """Where the instance comes from and goes to: `EC2`, `AutoScalingGroup` or `WarmPool`."""


def read(event: Envelope, *, transition: str) -> LifecycleFields:
    """Read the action, which must be of the kind that the event declares."""
    detail = event.detail
    said = detail.maybe("LifecycleTransition")
    if said not in (None, transition):
        place = detail.place("LifecycleTransition")
        raise BadInput(f"{place}: must be {transition} in this event, not {clip(said)}")
    about = event.about(detail.instance("EC2InstanceId"))
    token = detail.maybe("LifecycleActionToken")
    about["id"] = token or event.id
    return {
        **about,
        "group": detail.text("AutoScalingGroupName"),
        "hook": detail.text("LifecycleHookName"),
        "token": token,
        "metadata": detail.maybe("NotificationMetadata", limit=METADATA_LIMIT),
        "origin": detail.maybe("Origin"),
        "destination": detail.maybe("Destination"),
    }
