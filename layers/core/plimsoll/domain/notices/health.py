"""AWS Health Event, scheduled change of EC2: one event, a notice for each instance it affects.

More instances than fit are told in pages, and copies are delivered in a second region and to the
organization: every copy has the same communication id, so that, with the owner and the instance,
is the notice's id. Updates and cancellations have a new one and repeat the event's ARN.
https://docs.aws.amazon.com/health/latest/ug/aws-health-events-eventbridge-schema.html
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final, Literal, override

from plimsoll.domain.fields import ARN_LIMIT_CHARACTERS, INSTANCE
from plimsoll.domain.notices.about import About
from plimsoll.domain.notices.decision import Decision, Effect, Unknown, clock_text, drains
from plimsoll.domain.notices.envelope import Envelope

MAX_ENTITIES: Final = 10_000
"""More cannot be told within the size of an event."""

type Change = Literal["maintenance", "retirement", "other"]

_ARN: Final = re.compile(rf"arn:aws[a-z-]*:ec2:[^:]*:[^:]*:instance/({INSTANCE.pattern})")


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthScheduledChange(About):
    """AWS has put work on an instance, or its end, into the calendar."""

    kind: ClassVar[str] = "health-scheduled-change"

    change: Change
    """`maintenance` comes back; after `retirement` the instance does not; `other` may be either."""
    code: str
    """AWS's name of the change, as in AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED."""
    arn: str
    """The change itself: updates and its cancellation repeat it."""
    starts: datetime | None
    closed: bool
    """The change is over or was called off, for all or for this instance."""

    @property
    @override
    def ends(self) -> datetime | None:
        """The start of the change; None when it is closed, or was told only after it began."""
        if self.closed or self.starts is None or self.starts <= self.time:
            return None
        return self.starts

    @property
    @override
    def decision(self) -> Decision:
        """A drain until the change starts, unless it was called off."""
        if self.closed:
            reason = f"{self.code} is over or was called off"
            return Decision(effect=Effect.WITHDRAW, reason=reason)
        when = f"at {clock_text(self.ends)}" if self.ends else "at a time not known"
        what = {
            "maintenance": "maintenance begins",
            "retirement": "its hardware is retired",
            "other": f"{self.code} begins",
        }[self.change]
        return drains(f"{what} {when}")


def parse(event: Envelope) -> tuple[HealthScheduledChange | Unknown, ...]:
    """Read a notice for each affected instance; entities that are no instances are passed over."""
    detail = event.detail
    service, category = detail["service"].required(), detail["eventTypeCategory"].required()
    if service != "EC2" or category != "scheduledChange":
        return (_unknown(event, f"it is a {category} of {service}, not a scheduledChange of EC2"),)
    owner = detail["affectedAccount"].account() if detail["affectedAccount"] else event.account
    region = detail["eventRegion"].region() if detail["eventRegion"] else event.region
    communication = detail["communicationId"].optional() or event.id
    code = detail["eventTypeCode"].required()
    arn = detail["eventArn"].required(limit=ARN_LIMIT_CHARACTERS)
    starts = detail["startTime"].optional_time()
    closed = detail["statusCode"].optional() == "closed"
    found: dict[str, HealthScheduledChange] = {}
    for entity in detail["affectedEntities"].each(MAX_ENTITIES):
        instance = _instance(entity["entityValue"].required(limit=ARN_LIMIT_CHARACTERS))
        if instance is None:
            continue
        about = event.about(instance)
        about["id"] = f"{owner}/{communication}/{instance}"
        about["account"], about["region"] = owner, region
        found[instance] = HealthScheduledChange(
            **about,
            change=_change(code),
            code=code,
            arn=arn,
            starts=starts,
            closed=closed or entity["status"].optional() == "RESOLVED",
        )
    return tuple(found.values()) or (_unknown(event, "it names no instance"),)


def _instance(entity: str) -> str | None:
    """Find the id in an entity, which is an id in some events and an ARN in others."""
    if INSTANCE.fullmatch(entity):
        return entity
    arn = _ARN.fullmatch(entity)
    return arn[1] if arn else None


def _change(code: str) -> Change:
    if "RETIREMENT" in code:
        return "retirement"
    return "maintenance" if "MAINTENANCE" in code else "other"


def _unknown(event: Envelope, why: str) -> Unknown:
    return Unknown(
        source=event.source,
        detail_type=event.detail_type,
        why=why,
        time=event.received,
        id=event.id,
    )
