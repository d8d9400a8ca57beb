"""What EC2 says of instances, and what it says of their end when it is asked.

Asking is the net under the events: the resync reads spot requests, states and scheduled events, and
makes of them the notices that the lost events would have been. Their ids and times stay the same
however often it asks, so that they merge.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import batched
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from plimsoll.adapters.aws_errors import code_of, message_of, translated
from plimsoll.domain.node_groups import Instance
from plimsoll.domain.notices import (
    Change,
    HealthScheduledChange,
    InstanceNotice,
    SpotInterruption,
    StateChange,
)

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws
    from plimsoll.services.ports import Clock

BATCH_INSTANCES: Final = 100

type Json = Mapping[str, Any]

_UNKNOWN: Final = {"InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed"}
_ID: Final = re.compile(r"i-[0-9a-zA-Z]+")
_WHEN: Final = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)")
_ENDING: Final = ("stopping", "stopped", "shutting-down", "terminated")
_ENDS: Final = [{"Name": "instance-state-name", "Values": _ENDING}]
_CODES: Final = (
    "instance-reboot",
    "instance-retirement",
    "instance-stop",
    "system-maintenance",
    "system-reboot",
)
_HAS_EVENTS: Final = [{"Name": "event.code", "Values": _CODES}]
"""https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceStatus.html"""
_RECLAIMED: Final = (
    "marked-for-termination",
    "marked-for-stop",
    *(
        f"instance-{end}-{why}"
        for end in ("terminated", "stopped")
        for why in ("by-price", "no-capacity", "capacity-oversubscribed")
    ),
)
"""https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-request-status.html"""
_OVER: Final = ("[Completed]", "[Canceled]")
"""How the description of a scheduled event begins once it is over; it is listed for a week more."""


class Ec2Instances:
    """Implements `plimsoll.services.ports.Instances`, for one account and region."""

    def __init__(self, aws: Aws, clock: Clock) -> None:
        self._aws = aws
        self._clock = clock

    def describe(self, ids: Sequence[str]) -> Mapping[str, Instance]:
        """Return what EC2 knows of these instances; the unknown ones are left out.

        A terminated instance is known for about an hour.
        """
        return {i: _instance(found) for i, (_, found) in self._described(ids)}

    def interrupted(self, ids: Sequence[str]) -> Sequence[InstanceNotice]:
        """Return notices for those instances that are about to go, as events would have told.

        An instance that EC2 does not know is no notice: it may be too new as well as long gone.
        In calm times the answers are short, since EC2 itself leaves out what is not ending.
        """
        # Three requests, each with a filter of EC2. Instances in the
        # last two answers may still run, so the first answer lacks them.
        known = dict(self._described(ids, Filters=_ENDS))
        requests = [r for r in self._spot_requests(ids) if _is_reclaimed(r)]
        statuses = [s for s in self._statuses(ids) if s.get("Events")]
        found = {each["InstanceId"] for each in (*requests, *statuses)}
        # Only this answer has the owner's account and the zone that a notice needs.
        known |= dict(self._described(sorted(found - known.keys())))
        about = {i: self._about(owner, instance) for i, (owner, instance) in known.items()}
        notices: list[InstanceNotice] = [
            _spot(request, about[instance])
            for request in requests
            if (instance := request["InstanceId"]) in known
        ]
        for instance, (_, described) in known.items():
            notices += _state(described, about[instance], self._clock.now())
        for status in statuses:
            if (instance := status["InstanceId"]) in known:
                _, described = known[instance]
                notices += _events(status, about[instance], self._today(described))
        return notices

    def zones(self) -> Mapping[str, str]:
        """Return the zones of the region in this account: their ids, and their names."""
        with translated("describe the zones of the region"):
            found = self._aws.ec2.describe_availability_zones()["AvailabilityZones"]
        return {zone["ZoneId"]: zone["ZoneName"] for zone in found}

    def _described(
        self, ids: Sequence[str], **wanted: Any
    ) -> Iterator[tuple[str, tuple[str, Json]]]:
        """Yield the id of each instance, with its owner and what EC2 says of it."""
        ask = partial(self._aws.ec2.describe_instances, **wanted)
        # With ids EC2 answers in one page and takes no MaxResults.
        # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
        for batch in batched(dict.fromkeys(ids), BATCH_INSTANCES, strict=False):
            for reservation in self._known("describe instances", batch, ask).get(
                "Reservations", ()
            ):
                for instance in reservation["Instances"]:
                    yield instance["InstanceId"], (reservation.get("OwnerId", ""), instance)

    def _spot_requests(self, ids: Sequence[str]) -> Iterator[Json]:
        for batch in batched(ids, BATCH_INSTANCES, strict=False):
            with translated("describe spot instance requests"):
                pages = self._aws.ec2.get_paginator("describe_spot_instance_requests").paginate(
                    Filters=[
                        {"Name": "instance-id", "Values": list(batch)},
                        {"Name": "status-code", "Values": _RECLAIMED},
                    ]
                )
                found: list[Json] = [r for page in pages for r in page["SpotInstanceRequests"]]
            yield from (r for r in found if r.get("InstanceId") in batch)

    def _statuses(self, ids: Sequence[str]) -> Iterator[Json]:
        status: Callable[..., Json] = self._aws.ec2.describe_instance_status
        # Without IncludeAllInstances EC2 describes running instances only.
        # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceStatus.html
        ask = partial(status, IncludeAllInstances=True, Filters=_HAS_EVENTS)
        for batch in batched(ids, BATCH_INSTANCES, strict=False):
            yield from self._known("describe instance status", batch, ask).get(
                "InstanceStatuses", ()
            )

    def _known(self, what: str, ids: Sequence[str], ask: Callable[..., Any]) -> Json:
        """Ask for instances; EC2 refuses a whole batch for one id that it does not know."""
        # EC2 may not know a new instance yet. While a zone is disrupted, the call fails
        # for ids in that zone, and then it says nothing about the rest of the batch.
        # https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html
        # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
        left = list(ids)
        while left:
            with translated(what):
                try:
                    answer: Json = ask(InstanceIds=left)
                except ClientError as error:
                    # Only the message names the unknown ids. If it does not
                    # name all of them, the next round finds the others.
                    unknown = set(_ID.findall(message_of(error)))
                    if code_of(error) not in _UNKNOWN or not unknown.intersection(left):
                        raise
                    left = [i for i in left if i not in unknown]
                else:
                    return answer
        return {}

    def _about(self, owner: str, instance: Json) -> dict[str, Any]:
        return {
            "instance": instance["InstanceId"],
            "account": owner,
            "region": self._aws.region,
            "zone": instance.get("Placement", {}).get("AvailabilityZone"),
        }

    def _today(self, instance: Json) -> datetime:
        """Return a time for what has none: the day's beginning, but in the instance's life."""
        midnight = self._clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
        return max(midnight, _utc(instance.get("LaunchTime")) or midnight)


def _instance(found: Json) -> Instance:
    return Instance(
        id=found["InstanceId"],
        state=found["State"]["Name"],
        launched=_utc(found.get("LaunchTime")),
        zone=found.get("Placement", {}).get("AvailabilityZone"),
        instance_type=found.get("InstanceType"),
        spot=_is_spot(found),
        tags=tuple(sorted((t["Key"], t.get("Value", "")) for t in found.get("Tags", ()))),
        ended_by_owner=found.get("StateReason", {}).get("Code") in _OWNERS_DOING,
    )


_OWNERS_DOING: Final = {"Client.UserInitiatedShutdown", "Client.UserInitiatedHibernate"}
"""https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_StateReason.html"""


def _is_spot(found: Json) -> bool:
    return found.get("InstanceLifecycle") == "spot" or bool(found.get("SpotInstanceRequestId"))


def _is_reclaimed(request: Json) -> bool:
    status = request.get("Status", {})
    return "UpdateTime" in status and status.get("Code") in _RECLAIMED


def _spot(request: Json, about: Mapping[str, Any]) -> SpotInterruption:
    updated = request["Status"]["UpdateTime"].astimezone(UTC)
    action = "terminate"
    if "stop" in request["Status"]["Code"]:
        hibernates = request.get("InstanceInterruptionBehavior") == "hibernate"
        action = "hibernate" if hibernates else "stop"
    identity = f"{request['SpotInstanceRequestId']}/{updated:%Y%m%dT%H%M%S}"
    return SpotInterruption(**about, time=updated, id=identity, action=action)


def _state(found: Json, about: Mapping[str, Any], now: datetime) -> Iterator[StateChange]:
    state = found["State"]["Name"]
    if state not in _ENDING:
        return
    said = _WHEN.search(found.get("StateTransitionReason") or "")
    # Spot reclaims leave no time behind: then it is now, and the first to ask is believed.
    time = datetime.strptime(said[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC) if said else now
    launched = _utc(found.get("LaunchTime"))
    identity = f"{about['instance']}/{launched:%Y%m%dT%H%M%S}/{state}" if launched else state
    yield StateChange(**about, time=time, id=identity, state=state)


def _events(
    status: Json, about: Mapping[str, Any], time: datetime
) -> Iterator[HealthScheduledChange]:
    for event in status.get("Events", ()):
        code = event.get("Code", "")
        identity = event.get("InstanceEventId") or f"{about['instance']}/{code}"
        yield HealthScheduledChange(
            **about,
            time=time,
            id=identity,
            change=_change(code),
            code=code,
            arn=identity,
            starts=_utc(event.get("NotBefore")),
            closed=str(event.get("Description", "")).startswith(_OVER),
        )


def _change(code: str) -> Change:
    if "retirement" in code:
        return "retirement"
    return "maintenance" if "maintenance" in code or "reboot" in code else "other"


def _utc(time: datetime | None) -> datetime | None:
    """Return a time in UTC: botocore gives it in the machine's own time zone."""
    return None if time is None else time.astimezone(UTC)
