"""The three wrappings in which a notice may arrive, opened into one envelope.

* An EventBridge event, straight or as the target's SQS body.
* A flat Auto Scaling message, sent by a lifecycle hook to its queue with no event around it.
* Either of them inside an SNS notification: `{"Message": "<JSON as a string>"}`.

https://docs.aws.amazon.com/eventbridge/latest/ref/overiew-event-structure.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Self

from plimsoll.domain.errors import BadInput, Discardable
from plimsoll.domain.fields import ARN_LIMIT_CHARACTERS, Field, clip
from plimsoll.domain.notices.about import Common

BODY_LIMIT_BYTES: Final = 256 * 1024
"""Bytes. No event of AWS is nearly so large; whoever may put events may put 1 MiB."""

AUTO_SCALING: Final = "aws.autoscaling"
_FLAT: Final = {
    "autoscaling:EC2_INSTANCE_TERMINATING": "EC2 Instance-terminate Lifecycle Action",
    "autoscaling:EC2_INSTANCE_LAUNCHING": "EC2 Instance-launch Lifecycle Action",
}
_OURS: Final = re.compile(r'\s*\{[^{\[]{0,999}"source"\s*:\s*"plimsoll\.')
"""How an event begins whose source is not AWS's: all that stands before the first list or object is EventBridge's."""
_ZONE: Final = re.compile(r"[a-z]{2,4}(?:-[a-z]+)+-[0-9]{1,2}(?:-[a-z]+-[0-9]{1,2})?[a-z]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A body whose wrapping is off: who sent it and what it claims to be, nothing checked yet."""

    fields: Field
    source: str
    detail_type: str
    flat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What stands around the detail of an event."""

    source: str
    detail_type: str
    id: str
    account: str
    region: str | None
    time: datetime
    resources: tuple[str, ...]
    detail: Field
    received: datetime

    @classmethod
    def of(cls, opened: Opened, *, received: datetime, region: str | None) -> Self:
        """Check the envelope of an event whose kind is known."""
        fields = opened.fields
        if opened.flat:
            return cls(
                source=opened.source,
                detail_type=opened.detail_type,
                id=fields["RequestId"].required(),
                account=fields["AccountId"].account(),
                region=region,
                time=fields["Time"].time(),
                resources=(),
                detail=fields,
                received=received,
            )
        return cls(
            source=opened.source,
            detail_type=opened.detail_type,
            id=fields["id"].required(),
            account=fields["account"].account(),
            region=fields["region"].region(),
            time=fields["time"].time(),
            resources=_resources(fields["resources"].value),
            detail=fields["detail"].present(),
            received=received,
        )

    def about(self, instance: str) -> Common:
        """Return what every notice about an instance takes from its envelope."""
        return {
            "instance": instance,
            "time": self.time,
            "account": self.account,
            "region": self.region,
            "id": self.id,
            "zone": self._zone(instance),
        }

    def _zone(self, instance: str) -> str | None:
        """Find the zone that spot and rebalance events put where an ARN has its region."""
        for arn in self.resources:
            head, _, tail = arn.partition(":instance/")
            place = head.rpartition(":")[2]
            if tail == instance and _ZONE.fullmatch(place):
                return place
        return None


def open_envelope(body: object) -> Opened:
    """Take the wrapping off, once.

    Raises:
        BadInput: It is no JSON object, too large, or neither an event nor an Auto Scaling message. Of an event
            that begins as one of our own sources it is `Discardable`.
    """
    try:
        values = _object(body, "the body")
    except BadInput as error:
        if isinstance(body, str) and _OURS.match(body):
            raise Discardable(str(error)) from None
        raise
    message = values.get("Message")
    if isinstance(message, str) and "detail-type" not in values and "source" not in values:
        values = _object(message, "Message")
    fields = Field(values)
    if "detail-type" in values or "source" in values:
        return Opened(
            fields=fields,
            source=fields["source"].required(),
            detail_type=fields["detail-type"].required(),
        )
    if "LifecycleTransition" in values or "Event" in values:
        said = fields["LifecycleTransition"].optional() or fields["Event"].required()
        return Opened(
            fields=fields, source=AUTO_SCALING, detail_type=_FLAT.get(said, said), flat=True
        )
    raise BadInput(
        "the body is neither an EventBridge event (source, detail-type, detail) "
        "nor an Auto Scaling message (LifecycleTransition)"
    )


def _object(body: object, place: str) -> Mapping[str, object]:
    if isinstance(body, (str, bytes, bytearray)):
        size = len(body.encode("utf-8", "replace")) if isinstance(body, str) else len(body)
        if size > BODY_LIMIT_BYTES:
            raise BadInput(
                f"{place}: has {size} bytes, more than an event can have ({BODY_LIMIT_BYTES})"
            )
        try:
            body = json.loads(body)
        # RecursionError is no ValueError: Python's JSON parser raises it for deep nesting.
        except RecursionError:
            raise BadInput(f"{place}: is nested too deeply to be an event") from None
        except ValueError as error:
            raise BadInput(f"{place}: is not JSON ({error})"[:300]) from None
    if not isinstance(body, Mapping):
        raise BadInput(f"{place}: must be a JSON object, not {clip(body)}")
    return body


def _resources(value: object) -> tuple[str, ...]:
    """Accept anything: one documented event has a bare string here, and we only look for a zone."""
    found = value if isinstance(value, list) else [value]
    return tuple(arn for arn in found if isinstance(arn, str) and len(arn) <= ARN_LIMIT_CHARACTERS)
