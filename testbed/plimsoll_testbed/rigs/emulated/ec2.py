"""EC2's answers about the instances of a drill."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Any, Final

from plimsoll.domain.kubernetes import Resources
from plimsoll_simulation.fake_aws.fleet import Fleet
from plimsoll_simulation.fake_aws.machines import Machine
from plimsoll_testbed.rigs.emulated.awswire import AwsError, Operation, Parameters

_CODES: Final = {
    "pending": 0,
    "running": 16,
    "shutting-down": 32,
    "terminated": 48,
    "stopping": 64,
    "stopped": 80,
}


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
        wanted = _filter(parameters, "instance-state-name")
        return {
            "Reservations": [
                {"ReservationId": f"r-{m.id[2:]}", "Instances": [_instance(m)]}
                for m in self._machines(parameters.get("InstanceIds"))
                if wanted(m.state)
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
        wanted = _filter(parameters, "instance-id", "status-code")
        found = [_spot_request(m) for m in self._machines(None) if m.spot]
        requests = [r for r in found if wanted(r["InstanceId"], r["Status"]["Code"])]
        return {"SpotInstanceRequests": requests}

    def _machines(self, ids: Sequence[str] | None) -> Sequence[Machine]:
        known = {m.id: m for fleet in self._fleets for m in fleet.machine.values()}
        missing = [i for i in ids or () if i not in known]
        if missing:
            raise AwsError(
                "InvalidInstanceID.NotFound",
                f"The instance IDs '{', '.join(missing)}' do not exist",
            )
        return [known[i] for i in ids] if ids else list(known.values())


def _instance(machine: Machine) -> dict[str, Any]:
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
    if machine.ended_by_owner:
        described["StateReason"] = {"Code": "Client.UserInitiatedShutdown"}
    if machine.spot:  # on-demand instances have no such field
        described |= {"InstanceLifecycle": "spot", "SpotInstanceRequestId": _request_id(machine)}
    return described


def _status(machine: Machine) -> dict[str, Any]:
    events = [
        {
            "InstanceEventId": f"instance-event-{machine.id[2:]}",
            "Code": "instance-retirement",
            "Description": "The instance is running on degraded hardware",
            "NotBefore": machine.maintenance or told,
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


def _filter(parameters: Parameters, *known: str) -> Callable[..., bool]:
    """Return the test of the filters that an action knows, in this order; another one is an error."""
    filters = {f["Name"]: f["Values"] for f in parameters.get("Filters", [])}
    unknown = filters.keys() - set(known)
    if unknown:
        raise AwsError("InvalidParameterValue", f"the drill's fleet knows no filter {unknown}")
    return lambda *values: all(
        value in filters.get(name, [value]) for name, value in zip(known, values, strict=True)
    )
