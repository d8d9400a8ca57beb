"""Notices of a drill, as the EventBridge events that AWS would send.

Shapes are AWS's own, to the field; only the source is `plimsoll.drill`, because nobody but AWS may
send as `aws.*`. Sources:
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html,
https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-event-reference.html,
https://docs.aws.amazon.com/health/latest/ug/aws-health-events-eventbridge-schema.html,
https://docs.aws.amazon.com/r53recovery/latest/dg/eventbridge-zonal-autoshift.html
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Any, Final

from plimsoll.domain.notices import DRILL_SOURCE
from plimsoll_simulation.fake_aws.machines import OUR_HOOK, Machine, region_of, zone_id_of

ACCOUNT: Final = "111122223333"

type Event = dict[str, Any]


def event_of(  # noqa: PLR0913 - what an event is made of
    notice: str,
    machine: Machine,
    now: datetime,
    *,
    goes: datetime | None,
    state: str | None = None,
    hook: str = "",
) -> Event | None:
    """Return the event of a notice about a machine; None for the notice `none`.

    Args:
        notice: the kind, as scenarios name it.
        machine: the instance.
        now: when AWS says it happened; an event carries whole seconds.
        goes: when the instance will go, for the kinds that tell.
        state: the new state, for `state-change`.
        hook: the name of the hook, for `lifecycle-terminate`.
    """
    if notice == "none":
        return None
    now = now.replace(microsecond=0)
    region = region_of(machine.zone)
    title, resource, detail = _parts(notice, machine, now, goes=goes, state=state, hook=hook)
    return {
        "version": "0",
        "id": identity(machine, notice, now, *filter(None, [hook])),
        "detail-type": title,
        "source": DRILL_SOURCE,
        "account": ACCOUNT,
        "time": _zulu(now),
        "region": region,
        "resources": [resource],
        "detail": detail,
    }


def shift_event(
    zone: str, now: datetime, *, active: bool, practised_by: Sequence[str] = ()
) -> Event:
    """Return the event of a zonal shift that begins or is over.

    Args:
        zone: the zone that traffic leaves, by name.
        now: when; an event carries whole seconds.
        active: whether it begins.
        practised_by: the clusters whose practice run it is. None: an autoshift, of which every account of the region is told.
    """
    now = now.replace(microsecond=0)
    begins, ends = (
        ("Practice Run Started", "Practice Run Succeeded")
        if practised_by
        else ("Autoshift In Progress", "Autoshift Completed")
    )
    title, region = begins if active else ends, region_of(zone)
    return {
        "version": "0",
        "id": str(
            uuid.uuid5(uuid.NAMESPACE_URL, f"https://plimsoll.dev/drill/{title}/{zone}/{now}")
        ),
        "detail-type": title,
        "source": DRILL_SOURCE,
        "account": ACCOUNT,
        "time": _zulu(now),
        "region": region,
        "resources": [f"arn:aws:eks:{region}:{ACCOUNT}:cluster/{name}" for name in practised_by],
        "detail": {"version": "0.0.1", "data": "", "metadata": {"awayFrom": zone_id_of(zone)}},
    }


def identity(machine: Machine, *what: object) -> str:
    """Return a UUID that depends on what it is for, and on nothing else."""
    name = "/".join(map(str, (machine.cluster, machine.id, *what)))
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"https://plimsoll.dev/drill/{name}"))


type _Parts = tuple[str, str, dict[str, Any]]
"""Detail type, resource, detail."""


def _parts(  # noqa: PLR0913 - as above
    notice: str,
    machine: Machine,
    now: datetime,
    *,
    goes: datetime | None,
    state: str | None,
    hook: str,
) -> _Parts:
    goes = (goes or now + timedelta(seconds=120)).replace(microsecond=0)
    region = region_of(machine.zone)
    arn = f"arn:aws:ec2:{region}:{ACCOUNT}:instance/{machine.id}"
    # Two kinds write the zone for a region, and no account.
    zonal_arn = f"arn:aws:ec2:{machine.zone}:instance/{machine.id}"
    action = "terminate"
    if machine.returns is not None:
        action = "hibernate" if goes == now else "stop"
    interrupted = {"instance-id": machine.id, "instance-action": action}
    match notice:
        case "spot-interruption":
            return "EC2 Spot Instance Interruption Warning", zonal_arn, interrupted
        case "rebalance-recommendation":
            title = "EC2 Instance Rebalance Recommendation"
            return title, zonal_arn, {"instance-id": machine.id}
        case "lifecycle-terminate":
            return _lifecycle(machine, now, hook)
        case "health-scheduled-change":
            return _health(machine, now, goes)
        case "capacity-reservation-interruption":
            title = "EC2 Capacity Reservation Instance Interruption Warning"
            return title, arn, {**interrupted, "instance-termination-time": _zulu(goes)}
        case "state-change":
            title = "EC2 Instance State-change Notification"
            return title, arn, {"instance-id": machine.id, "state": state}
        case _:
            raise KeyError(notice)


def _lifecycle(machine: Machine, now: datetime, hook: str) -> _Parts:
    group = machine.group.name
    arn = (
        f"arn:aws:autoscaling:{region_of(machine.zone)}:{ACCOUNT}:autoScalingGroup:"
        f"{identity(machine, 'group')}:autoScalingGroupName/{group}"
    )
    detail = {
        "LifecycleActionToken": identity(machine, "token", now, hook),
        "AutoScalingGroupName": group,
        "LifecycleHookName": hook or OUR_HOOK,
        "EC2InstanceId": machine.id,
        "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
        "NotificationMetadata": f"cluster={machine.cluster}",
        "Origin": "AutoScalingGroup",
        "Destination": "EC2",
    }
    return "EC2 Instance-terminate Lifecycle Action", arn, detail


def _health(machine: Machine, now: datetime, goes: datetime) -> _Parts:
    region = region_of(machine.zone)
    code = "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"
    told = format_datetime(now, usegmt=True)
    detail = {
        "eventArn": f"arn:aws:health:{region}::event/EC2/{code}/{code}_{identity(machine, code)}",
        "service": "EC2",
        "eventTypeCode": code,
        "eventTypeCategory": "scheduledChange",
        "eventScopeCode": "ACCOUNT_SPECIFIC",
        "communicationId": identity(machine, "communication", now, goes),
        "startTime": format_datetime(goes, usegmt=True),
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


def _zulu(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
