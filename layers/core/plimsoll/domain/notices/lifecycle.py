"""Lifecycle actions of Auto Scaling groups, and the test notification of a hook.

The same body is the `detail` of an event and the whole of a message that a hook sends straight to
its queue; a group may do both, so the token of the action, not the event, tells copies apart.
https://docs.aws.amazon.com/autoscaling/ec2/userguide/prepare-for-lifecycle-notifications.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Final, override

from plimsoll.domain.notices.about import About, Common
from plimsoll.domain.notices.decision import Decision, drains, nothing
from plimsoll.domain.notices.envelope import Envelope, Opened

WARM_POOL: Final = "WarmPool"
HOOK_TIMEOUT: Final = timedelta(minutes=5)
"""How long the hook is believed to wait until it has been read: the event does not say. (A hook made
without a timeout waits an hour.)"""
_METADATA_LIMIT: Final = 4000
"""https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_PutLifecycleHook.html"""
_TEST: Final = "autoscaling:TEST_NOTIFICATION"


class LifecycleFields(Common):
    """The fields that both kinds of lifecycle notice are made of."""

    group: str
    hook: str
    token: str | None
    destination: str | None
    metadata: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleNotice(About):
    """An instance waits in a lifecycle action, until it is completed or times out."""

    group: str
    hook: str
    token: str | None
    """Absent: the action is completed by its instance instead."""
    destination: str | None = None
    """Where the instance goes to: `EC2`, `AutoScalingGroup` or `WarmPool`."""
    metadata: str = ""
    """What the owner of the hook wrote for whoever hears of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleLaunch(LifecycleNotice):
    """A group is launching an instance, which waits until somebody says that it is ready."""

    kind: ClassVar[str] = "lifecycle-launch"

    @property
    @override
    def decision(self) -> Decision:
        """Nothing: it comes."""
        return nothing(f"{self.group} launches it")


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleTerminate(LifecycleNotice):
    """A group is about to terminate an instance, and waits for its hook."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TestNotification:
    """A hook's queue works: Auto Scaling sends this once when a hook is given a target."""

    __test__: ClassVar[bool] = False  # its name makes pytest curious

    kind: ClassVar[str] = "test-notification"

    group: str | None
    time: datetime
    """When it was received: nothing hangs on its own time."""

    @property
    def decision(self) -> Decision:
        """Nothing: it arrived."""
        return nothing("Auto Scaling tests the queue of a hook")


def launching(event: Envelope) -> tuple[LifecycleLaunch]:
    """Read the one notice of an EC2 Instance-launch Lifecycle Action."""
    return (LifecycleLaunch(**_read(event, transition="autoscaling:EC2_INSTANCE_LAUNCHING")),)


def terminating(event: Envelope) -> tuple[LifecycleTerminate]:
    """Read the one notice of an EC2 Instance-terminate Lifecycle Action."""
    return (LifecycleTerminate(**_read(event, transition="autoscaling:EC2_INSTANCE_TERMINATING")),)


def recognised(opened: Opened, *, received: datetime) -> TestNotification | None:
    """Tell a test from a lifecycle action: it says so flat, or inside the detail of an event."""
    detail = opened.fields["detail"].value
    for body in (opened.fields.value, detail):
        if isinstance(body, Mapping) and _TEST in (
            body.get("Event"),
            body.get("LifecycleTransition"),
        ):
            group = body.get("AutoScalingGroupName")
            return TestNotification(
                group=group[:256] if isinstance(group, str) else None, time=received
            )
    return None


def _read(event: Envelope, *, transition: str) -> LifecycleFields:
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
        "metadata": detail["NotificationMetadata"].optional(limit=_METADATA_LIMIT) or "",
    }
