"""EC2's answers about the instances of a drill."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil
from typing import Any, Final

from plimsoll.domain.quantities import Resources
from plimsoll_testbed.model.fleet import Fleet
from plimsoll_testbed.model.machines import Machine
from plimsoll_testbed.rigs.emulated.awswire import AwsError, Operation, Parameters

_CODES: Final = {"pending": 0, "running": 16, "terminated": 48}


class Ec2:
    """Instances, their spot requests, their status."""

    def __init__(self, fleets: Sequence[Fleet]) -> None:
        self._fleets = fleets

    def answers(self) -> Mapping[str, Operation]:
        """Return the table of what is answered."""
        return {
            "ec2:DescribeInstances": self._instances,
            "ec2:DescribeInstanceStatus": self._status,
            "ec2:DescribeInstanceTypes": self._types,
            "ec2:DescribeSpotInstanceRequests": self._spot_requests,
        }

    def _instances(self, parameters: Parameters) -> Mapping[str, Any]:
        described = [instance(m) for m in self._machines(parameters.get("InstanceIds"))]
        found = list(_filtered(described, parameters.get("Filters", []), _FIELDS))
        return {
            "Reservations": [
                {"ReservationId": f"r-{i['InstanceId'][2:]}", "Instances": [i]} for i in found
            ]
        }

    def _status(self, parameters: Parameters) -> Mapping[str, Any]:
        every = parameters.get("IncludeAllInstances", False)
        machines = [
            m
            for m in self._machines(parameters.get("InstanceIds"))
            if every or m.state == "running"
        ]
        return {"InstanceStatuses": [_status(m) for m in machines]}

    def _types(self, parameters: Parameters) -> Mapping[str, Any]:
        known = {
            group.spec.instance_type: Resources.parse(group.spec.allocatable)
            for fleet in self._fleets
            for group in fleet.groups.values()
        }
        wanted = parameters.get("InstanceTypes") or sorted(known)
        missing = [name for name in wanted if name not in known]
        if missing:
            raise AwsError(
                "InvalidInstanceType",
                f"The following supplied instance types do not exist: [{', '.join(missing)}]",
            )
        return {"InstanceTypes": [_type(name, known[name]) for name in wanted]}

    def _spot_requests(self, parameters: Parameters) -> Mapping[str, Any]:
        described = [_spot_request(m) for m in self._machines(None) if m.spot]
        wanted = parameters.get("SpotInstanceRequestIds")
        if wanted:
            described = [r for r in described if r["SpotInstanceRequestId"] in wanted]
        found = list(_filtered(described, parameters.get("Filters", []), _SPOT_FIELDS))
        return {"SpotInstanceRequests": found}

    def _machines(self, ids: Sequence[str] | None) -> Sequence[Machine]:
        known = {m.id: m for fleet in self._fleets for m in fleet.machine.values()}
        missing = [i for i in ids or () if i not in known]
        if missing:
            raise AwsError(
                "InvalidInstanceID.NotFound",
                f"The instance IDs '{', '.join(missing)}' do not exist",
            )
        return [known[i] for i in ids] if ids else list(known.values())


def instance(machine: Machine) -> dict[str, Any]:
    """Return a machine as DescribeInstances does."""
    group = machine.group
    tags = {
        "Name": machine.node,
        f"kubernetes.io/cluster/{machine.cluster}": "owned",
        "aws:autoscaling:groupName": group.name,
    }
    if group.kind == "eks-nodegroup":
        tags |= {"eks:cluster-name": machine.cluster, "eks:nodegroup-name": group.name}
    if group.kind == "static":
        del tags["aws:autoscaling:groupName"]
    described: dict[str, Any] = {
        "InstanceId": machine.id,
        "InstanceType": group.instance_type,
        "State": {"Code": _CODES[machine.state], "Name": machine.state},
        "LaunchTime": machine.launched.replace(microsecond=0),  # EC2 says whole seconds
        "Placement": {"AvailabilityZone": machine.zone, "Tenancy": "default"},
        "PrivateDnsName": machine.node,
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
    }
    if machine.spot:  # on-demand instances have no such field
        described |= {"InstanceLifecycle": "spot", "SpotInstanceRequestId": _request_id(machine)}
    return described


def _status(machine: Machine) -> dict[str, Any]:
    events = [
        {
            "InstanceEventId": f"instance-event-{machine.id[2:]}",
            "Code": "instance-retirement",
            "Description": "The instance is running on degraded hardware",
            "NotBefore": machine.ends or told,
        }
        for kind, told in machine.notices
        if kind == "health-scheduled-change"
    ]
    return {
        "InstanceId": machine.id,
        "AvailabilityZone": machine.zone,
        "InstanceState": {"Code": _CODES[machine.state], "Name": machine.state},
        "InstanceStatus": {"Status": "ok"},
        "SystemStatus": {"Status": "ok"},
        "Events": events,
    }


def _spot_request(machine: Machine) -> dict[str, Any]:
    """Return a spot request with the status codes of its life.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-request-status.html
    """
    state, code, since = "active", "fulfilled", machine.launched
    for kind, told in machine.notices:
        if kind == "spot-interruption":
            code, since = "marked-for-termination", told
    if machine.gone is not None:
        state, code, since = "closed", "instance-terminated-no-capacity", machine.gone
    return {
        "SpotInstanceRequestId": _request_id(machine),
        "InstanceId": machine.id,
        "State": state,
        "Status": {"Code": code, "Message": code, "UpdateTime": since},
        "CreateTime": machine.launched,
        "Type": "one-time",
        "InstanceInterruptionBehavior": "terminate",
    }


def _type(name: str, resources: Resources) -> dict[str, Any]:
    return {
        "InstanceType": name,
        "VCpuInfo": {"DefaultVCpus": ceil(resources.cpu / 1000)},
        "MemoryInfo": {"SizeInMiB": ceil(resources.memory / 1024**2)},
        "SupportedUsageClasses": ["on-demand", "spot"],
    }


def _request_id(machine: Machine) -> str:
    return f"sir-{machine.id[-8:]}"


_FIELDS: Final = {
    "instance-id": lambda i: i["InstanceId"],
    "instance-lifecycle": lambda i: i.get("InstanceLifecycle", ""),
    "instance-state-name": lambda i: i["State"]["Name"],
    "availability-zone": lambda i: i["Placement"]["AvailabilityZone"],
    "private-dns-name": lambda i: i["PrivateDnsName"],
}
_SPOT_FIELDS: Final = {
    "instance-id": lambda r: r["InstanceId"],
    "state": lambda r: r["State"],
    "status-code": lambda r: r["Status"]["Code"],
}


def _filtered(
    described: Iterable[dict[str, Any]], filters: Sequence[Parameters], fields: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    for item in described:
        if all(_passes(item, f["Name"], f.get("Values", []), fields) for f in filters):
            yield item


def _passes(
    item: Mapping[str, Any], name: str, values: Sequence[str], fields: Mapping[str, Any]
) -> bool:
    tags = {t["Key"]: t["Value"] for t in item.get("Tags", [])}
    if name == "tag-key":
        return any(key in tags for key in values)
    if name.startswith("tag:"):
        return tags.get(name.removeprefix("tag:")) in values
    if name not in fields:
        raise AwsError("InvalidParameterValue", f"the drill's fleet knows no filter '{name}'")
    return fields[name](item) in values
