"""EC2's answers about the fleets of instances (type `maintain`) of a drill.

https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeFleets.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from plimsoll.adapters.nodegroups.ec2_fleet import MAXIMUM
from plimsoll.domain.kubernetes import GROW, RENEW
from plimsoll_testbed.model.fleet import AGE, Fleet, Group
from plimsoll_testbed.rigs.emulated.awswire import AwsError, Operation, Parameters

KIND: Final = "ec2-fleet"


class Ec2Fleets:
    """Fleets, under the names of their groups."""

    def __init__(self, fleets: Sequence[Fleet], clock: Callable[[], datetime]) -> None:
        self._groups = {
            name: (fleet, group)
            for fleet in fleets
            for name, group in fleet.groups.items()
            if group.spec.kind == KIND
        }
        self._clock = clock

    def answers(self) -> Mapping[str, Operation]:
        """Return the table of what is answered."""
        return {
            "ec2:DescribeFleets": self._describe,
            "ec2:DescribeFleetInstances": self._instances,
            "ec2:DescribeFleetHistory": self._history,
            "ec2:ModifyFleet": self._modify,
            "ec2:TerminateInstances": self._terminate,
        }

    def _describe(self, parameters: Parameters) -> Mapping[str, Any]:
        wanted = parameters.get("FleetIds") or sorted(self._groups)
        return {"Fleets": [_described(*self._find(name)) for name in wanted]}

    def _instances(self, parameters: Parameters) -> Mapping[str, Any]:
        _, group = self._find(parameters["FleetId"])
        return {
            "FleetId": parameters["FleetId"],
            "ActiveInstances": [
                {"InstanceId": m.id, "InstanceType": m.group.instance_type} for m in group.alive
            ],
        }

    def _history(self, parameters: Parameters) -> Mapping[str, Any]:
        _, group = self._find(parameters["FleetId"])
        since = parameters["StartTime"].replace(tzinfo=UTC)  # the parser leaves the zone out
        return {
            "FleetId": parameters["FleetId"],
            "HistoryRecords": [r for r in _records(group) if r["Timestamp"] >= since],
        }

    def _modify(self, parameters: Parameters) -> Mapping[str, Any]:
        fleet, group = self._find(parameters["FleetId"])
        wanted = parameters["TargetCapacitySpecification"]["TotalTargetCapacity"]
        if wanted < group.desired:
            if parameters.get("ExcessCapacityTerminationPolicy") != "no-termination":
                raise AwsError("InvalidParameterValue", "the drill's fleet chooses nobody to end")
            group.desired = wanted
            return {"Return": True}
        fleet.raise_desired(group.spec.name, wanted, self._clock())
        return {"Return": True}

    def _terminate(self, parameters: Parameters) -> Mapping[str, Any]:
        for instance in parameters["InstanceIds"]:
            found = (
                f for f, group in self._groups.values() for m in group.alive if m.id == instance
            )
            fleet = next(found, None)
            if fleet is None:
                raise AwsError(
                    "InvalidInstanceID.NotFound", f"no fleet has the instance {instance}"
                )
            fleet.end(instance, self._clock())
        return {"TerminatingInstances": [{"InstanceId": i} for i in parameters["InstanceIds"]]}

    def _find(self, name: str) -> tuple[Fleet, Group]:
        if name not in self._groups:
            raise AwsError("InvalidFleetId.NotFound", f"The fleet ID '{name}' does not exist")
        return self._groups[name]


def _described(fleet: Fleet, group: Group) -> dict[str, Any]:
    spec = group.spec
    tags = {
        f"kubernetes.io/cluster/{fleet.cluster}": "owned",
        GROW: "true",
        MAXIMUM: str(spec.max),
        RENEW: str(spec.renew).lower(),
    }
    overrides = [
        {"InstanceType": spec.instance_type, "AvailabilityZone": zone} for zone in spec.zones
    ]
    return {
        "FleetId": spec.name,
        "Type": "maintain",
        "FleetState": "active",
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": group.desired,
            "DefaultTargetCapacityType": spec.capacity,
        },
        "LaunchTemplateConfigs": [{"Overrides": overrides}],
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
    }


def _records(group: Group) -> Iterator[dict[str, Any]]:
    for machine in group.machines:
        if machine.ready - machine.launched < AGE:
            yield {
                "EventType": "instance-change",
                "EventInformation": {"EventSubType": "launched", "InstanceId": machine.id},
                "Timestamp": machine.launched,
            }
    if group.failed is not None:
        at, why = group.failed
        about = {
            "EventSubType": "launchSpecUnusable",
            "EventDescription": f"{why.code}: {why.words}",
        }
        yield {"EventType": "information", "EventInformation": about, "Timestamp": at}
