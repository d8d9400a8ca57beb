"""Notices of a drill, as the EventBridge events that AWS would send.

Shapes are AWS's own, to the field; only the source is `plimsoll.drill`, because nobody but AWS may
send as `aws.*`. Sources:
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html,
https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-event-reference.html,
https://docs.aws.amazon.com/health/latest/ug/aws-health-events-eventbridge-schema.html
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Any, Final

from plimsoll.domain.notices import DRILL_SOURCE
from plimsoll_testbed.model.machines import Machine, region_of

ACCOUNT: Final = "111122223333"
HOOK: Final = "plimsoll-terminate"

type Event = dict[str, Any]


def event_of(
    notice: str, machine: Machine, now: datetime, *, goes: datetime | None, state: str | None = None
) -> Event | None:
    """Return the event of a notice about a machine; None for the notice `none`.

    Args:
        notice: the kind, as scenarios name it.
        machine: the instance.
        now: when AWS says it happened; an event carries whole seconds.
        goes: when the instance will go, for the kinds that tell.
        state: the new state, for `state-change`.
    """
    if notice == "none":
        return None
    now = now.replace(microsecond=0)
    region = region_of(machine.zone)
    title, resource, detail = _KINDS[notice](machine, now, goes, state)
    return {
        "version": "0",
        "id": identity(machine, notice, now),
        "detail-type": title,
        "source": DRILL_SOURCE,
        "account": ACCOUNT,
        "time": _zulu(now),
        "region": region,
        "resources": [resource],
        "detail": detail,
    }


def identity(machine: Machine, *what: object) -> str:
    """Return a UUID that depends on what it is for, and on nothing else."""
    name = "/".join(map(str, (machine.cluster, machine.id, *what)))
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"https://plimsoll.dev/drill/{name}"))


type _Parts = tuple[str, str, dict[str, Any]]
"""Detail type, resource, detail."""


def _spot(machine: Machine, _now: datetime, _goes: datetime | None, _state: str | None) -> _Parts:
    detail = {"instance-id": machine.id, "instance-action": "terminate"}
    return "EC2 Spot Instance Interruption Warning", _zonal_arn(machine), detail


def _rebalance(
    machine: Machine, _now: datetime, _goes: datetime | None, _state: str | None
) -> _Parts:
    detail = {"instance-id": machine.id}
    return "EC2 Instance Rebalance Recommendation", _zonal_arn(machine), detail


def _lifecycle(
    machine: Machine, now: datetime, _goes: datetime | None, _state: str | None
) -> _Parts:
    group = machine.group.name
    arn = (
        f"arn:aws:autoscaling:{region_of(machine.zone)}:{ACCOUNT}:autoScalingGroup:"
        f"{identity(machine, 'group')}:autoScalingGroupName/{group}"
    )
    detail = {
        "LifecycleActionToken": identity(machine, "token", now),
        "AutoScalingGroupName": group,
        "LifecycleHookName": HOOK,
        "EC2InstanceId": machine.id,
        "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
        "NotificationMetadata": f"cluster={machine.cluster}",
        "Origin": "AutoScalingGroup",
        "Destination": "EC2",
    }
    return "EC2 Instance-terminate Lifecycle Action", arn, detail


def _health(machine: Machine, now: datetime, goes: datetime | None, _state: str | None) -> _Parts:
    region = region_of(machine.zone)
    code = "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"
    told = format_datetime(now, usegmt=True)
    detail = {
        "eventArn": f"arn:aws:health:{region}::event/EC2/{code}/{code}_{identity(machine, code)}",
        "service": "EC2",
        "eventTypeCode": code,
        "eventTypeCategory": "scheduledChange",
        "eventScopeCode": "ACCOUNT_SPECIFIC",
        "communicationId": identity(machine, "communication", now),
        "startTime": format_datetime(_soon(now, goes), usegmt=True),
        "lastUpdatedTime": told,
        "statusCode": "upcoming",
        "eventRegion": region,
        "eventDescription": [
            {"language": "en_US", "latestDescription": "An instance of yours will be retired."}
        ],
        "affectedEntities": [
            {"entityValue": machine.id, "lastUpdatedTime": told, "status": "PENDING"}
        ],
        "affectedAccount": ACCOUNT,
        "page": "1",
        "totalPages": "1",
        "backupEvent": "false",
    }
    return "AWS Health Event", machine.id, detail


def _reservation(
    machine: Machine, now: datetime, goes: datetime | None, _state: str | None
) -> _Parts:
    detail = {
        "instance-id": machine.id,
        "instance-action": "terminate",
        "instance-termination-time": _zulu(_soon(now, goes)),
    }
    return "EC2 Capacity Reservation Instance Interruption Warning", _arn(machine), detail


def _state_change(
    machine: Machine, _now: datetime, _goes: datetime | None, state: str | None
) -> _Parts:
    detail = {"instance-id": machine.id, "state": state}
    return "EC2 Instance State-change Notification", _arn(machine), detail


_KINDS: Final[Mapping[str, Callable[[Machine, datetime, datetime | None, str | None], _Parts]]] = {
    "spot-interruption": _spot,
    "rebalance-recommendation": _rebalance,
    "lifecycle-terminate": _lifecycle,
    "health-scheduled-change": _health,
    "capacity-reservation-interruption": _reservation,
    "state-change": _state_change,
}


def _zulu(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def _soon(now: datetime, goes: datetime | None) -> datetime:
    return (goes or now + timedelta(seconds=120)).replace(microsecond=0)


def _arn(machine: Machine) -> str:
    return f"arn:aws:ec2:{region_of(machine.zone)}:{ACCOUNT}:instance/{machine.id}"


def _zonal_arn(machine: Machine) -> str:
    """Return the ARN as these two kinds write it: the zone for a region, and no account."""
    return f"arn:aws:ec2:{machine.zone}:instance/{machine.id}"
