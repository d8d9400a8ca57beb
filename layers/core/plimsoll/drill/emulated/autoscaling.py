"""Auto Scaling's answers about the groups of a drill.

A managed node group of EKS stands on an Auto Scaling group of another name, as on AWS.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from plimsoll.domain.errors import Refused
from plimsoll.domain.names import ZONE
from plimsoll.drill.emulated.awswire import Answer, AwsError, Parameters
from plimsoll.drill.events import ACCOUNT, HOOK, identity
from plimsoll.drill.fleet import Fleet, Group
from plimsoll.drill.machines import Machine, node_labels, region_of

_LIFE: Final = {"pending": "Pending", "running": "InService"}
_HOOK_SECONDS: Final = 300
_NODE: Final = "k8s.io/cluster-autoscaler/node-template/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A group under the name that Auto Scaling knows it by."""

    name: str
    fleet: Fleet
    group: Group


class AutoScaling:
    """Groups, their instances, and what can be asked of them."""

    def __init__(self, fleets: Sequence[Fleet], clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._groups = {named.name: named for named in _named(fleets)}
        self._asked: dict[str, tuple[Parameters, Mapping[str, Any]]] = {}

    def name_of(self, cluster: str, group: str) -> str:
        """Return the name of a node group's Auto Scaling group."""
        return next(
            n.name
            for n in self._groups.values()
            if (n.fleet.cluster, n.group.spec.name) == (cluster, group)
        )

    def answers(self) -> Mapping[str, Answer]:
        """Return the table of what is answered."""
        table = {
            "CompleteLifecycleAction": self._complete,
            "DescribeAutoScalingGroups": self._describe,
            "DescribeAutoScalingInstances": self._instances,
            "DescribeLifecycleHooks": self._hooks,
            "DescribeScalingActivities": self._activities,
            "LaunchInstances": self._launch,
            "SetDesiredCapacity": self._set_desired,
            "TerminateInstanceInAutoScalingGroup": self._terminate,
        }
        return {
            **{f"autoscaling:{action}": answer for action, answer in table.items()},
            "ec2:DescribeLaunchTemplateVersions": self._template_versions,
        }

    def _describe(self, parameters: Parameters) -> Mapping[str, Any]:
        wanted = parameters.get("AutoScalingGroupNames")
        found = [
            self._group(n)
            for n in self._groups.values()
            if (not wanted or n.name in wanted)
            and all(_passes(_tags(n), f) for f in parameters.get("Filters", []))
        ]
        return {"AutoScalingGroups": found}

    def _instances(self, parameters: Parameters) -> Mapping[str, Any]:
        wanted = parameters.get("InstanceIds")
        return {
            "AutoScalingInstances": [
                {**_instance(m), "AutoScalingGroupName": n.name}
                for n in self._groups.values()
                for m in n.group.alive
                if not wanted or m.id in wanted
            ]
        }

    def _template_versions(self, parameters: Parameters) -> Mapping[str, Any]:
        wanted = {parameters.get("LaunchTemplateId"), parameters.get("LaunchTemplateName")}
        for named in self._groups.values():
            template = _template(named)
            if wanted & {template["LaunchTemplateId"], template["LaunchTemplateName"]}:
                spec = named.group.spec
                data: dict[str, Any] = {"InstanceType": spec.instance_type}
                if spec.capacity == "spot":
                    data["InstanceMarketOptions"] = {"MarketType": "spot"}
                version = {
                    "LaunchTemplateId": template["LaunchTemplateId"],
                    "LaunchTemplateName": template["LaunchTemplateName"],
                    "VersionNumber": 1,
                    "LaunchTemplateData": data,
                }
                return {"LaunchTemplateVersions": [version]}
        raise AwsError("InvalidLaunchTemplateId.NotFound", f"no launch template {wanted}")

    def _hooks(self, parameters: Parameters) -> Mapping[str, Any]:
        named = self._find(parameters)
        hook = {
            "LifecycleHookName": HOOK,
            "AutoScalingGroupName": named.name,
            "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
            "HeartbeatTimeout": _HOOK_SECONDS,
            "DefaultResult": "CONTINUE",
        }
        return {"LifecycleHooks": [hook]}

    def _activities(self, parameters: Parameters) -> Mapping[str, Any]:
        named = self._find(parameters)
        until = named.group.refused_until
        starting = [_started(named, m) for m in reversed(named.group.machines)]
        if until is not None and self._clock() < until:
            missing = named.group.desired - len(named.group.alive)
            starting = [_failed(named, self._clock()) for _ in range(max(0, missing))] + starting
        return {"Activities": starting}

    def _set_desired(self, parameters: Parameters) -> Mapping[str, Any]:
        named, wanted = self._find(parameters), parameters["DesiredCapacity"]
        if wanted < named.group.desired:
            raise AwsError(
                "ValidationError",
                f"the drill's fleet lowers nothing: {named.name} has desired capacity "
                f"{named.group.desired}, asked was {wanted}",
            )
        named.fleet.raise_desired(named.group.spec.name, wanted, self._clock())
        return {}

    def _launch(self, parameters: Parameters) -> Mapping[str, Any]:
        """Launch now, all or none; want of capacity is part of the answer, not an error.

        https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_LaunchInstances.html
        """
        token = parameters["ClientToken"]
        if token in self._asked:
            before, answer = self._asked[token]
            if before != parameters:
                raise AwsError(
                    "IdempotentParameterMismatchError", f"token {token} was for another request"
                )
            return answer
        answer = self._launched(self._find(parameters), parameters)
        self._asked[token] = (parameters, answer)
        return answer

    def _launched(self, named: Named, parameters: Parameters) -> Mapping[str, Any]:
        zones = parameters.get("AvailabilityZones") or [None]
        if len(zones) > 1:
            raise AwsError("ValidationError", "Only one Availability Zone may be given.")
        if zones[0] not in {None, *named.group.spec.zones}:
            raise AwsError("ValidationError", f"{named.name} has no Availability Zone {zones[0]}.")
        spec = named.group.spec
        answer: dict[str, Any] = {
            "AutoScalingGroupName": named.name,
            "ClientToken": parameters["ClientToken"],
            "Instances": [],
            "Errors": [],
        }
        pool = {"InstanceType": spec.instance_type, "MarketType": spec.capacity}
        try:
            started = named.fleet.launch(
                spec.name, parameters["RequestedCapacity"], zones[0], self._clock()
            )
        except Refused as error:
            code, _, words = str(error).partition(": ")
            if code != "InsufficientInstanceCapacity":
                raise
            zone = zones[0] or named.group.next_zone()
            answer["Errors"] = [
                {**pool, "AvailabilityZone": zone, "ErrorCode": code, "ErrorMessage": words}
            ]
            return answer
        for zone in dict.fromkeys(m.zone for m in started):
            ids = [m.id for m in started if m.zone == zone]
            answer["Instances"].append({**pool, "AvailabilityZone": zone, "InstanceIds": ids})
        return answer

    def _complete(self, parameters: Parameters) -> Mapping[str, Any]:
        named = self._find(parameters)
        token, instance = parameters.get("LifecycleActionToken"), parameters.get("InstanceId")
        for machine in named.group.alive:
            if machine.id == instance or (token and token in _tokens(machine)):
                named.fleet.end(machine.id, self._clock())
                return {}
        raise AwsError(
            "ValidationError", f"No active Lifecycle Action found with instance ID {instance}"
        )

    def _terminate(self, parameters: Parameters) -> Mapping[str, Any]:
        if parameters.get("ShouldDecrementDesiredCapacity"):
            raise AwsError("ValidationError", "the drill's fleet lowers nothing")
        for named in self._groups.values():
            for machine in named.group.alive:
                if machine.id == parameters["InstanceId"]:
                    named.fleet.end(machine.id, self._clock())
                    return {"Activity": _activity(named, machine.id, self._clock(), "InProgress")}
        raise AwsError("ValidationError", f"Instance Id not found - {parameters['InstanceId']}")

    def _find(self, parameters: Parameters) -> Named:
        name = parameters["AutoScalingGroupName"]
        if name not in self._groups:
            raise AwsError("ValidationError", f"AutoScalingGroup name not found - {name}")
        return self._groups[name]

    def _group(self, named: Named) -> Mapping[str, Any]:
        spec = named.group.spec
        return {
            "AutoScalingGroupName": named.name,
            "AutoScalingGroupARN": (
                f"arn:aws:autoscaling:{region_of(spec.zones[0])}:{ACCOUNT}:autoScalingGroup:"
                f"{named.fleet.cluster}:autoScalingGroupName/{named.name}"
            ),
            "LaunchTemplate": _template(named),
            "MinSize": 0,
            "MaxSize": spec.max,
            "DesiredCapacity": named.group.desired,
            "DefaultCooldown": 300,
            "AvailabilityZones": list(spec.zones),
            "HealthCheckType": "EC2",
            "CreatedTime": named.group.machines[0].launched
            if named.group.machines
            else self._clock(),
            "Instances": [
                {**_instance(m), "LaunchTemplate": _template(named)} for m in named.group.alive
            ],
            "Tags": [
                {
                    "Key": key,
                    "Value": value,
                    "ResourceId": named.name,
                    "ResourceType": "auto-scaling-group",
                    "PropagateAtLaunch": True,
                }
                for key, value in _tags(named).items()
            ],
        }


def _named(fleets: Sequence[Fleet]) -> Iterator[Named]:
    names = Counter(name for fleet in fleets for name in fleet.groups)
    for fleet in fleets:
        for name, group in fleet.groups.items():
            known = name if names[name] == 1 else f"{fleet.cluster}-{name}"
            match group.spec.kind:
                case "asg":
                    yield Named(name=known, fleet=fleet, group=group)
                case "eks-nodegroup":
                    yield Named(name=f"eks-{known}", fleet=fleet, group=group)
                case "static":
                    continue


def _tags(named: Named) -> Mapping[str, str]:
    cluster, spec = named.fleet.cluster, named.group.spec
    tags = {
        f"kubernetes.io/cluster/{cluster}": "owned",
        f"k8s.io/cluster-autoscaler/{cluster}": "owned",
        "k8s.io/cluster-autoscaler/enabled": "true",
        # What a node will be, for groups that have none:
        **{f"{_NODE}resources/{k}": str(v) for k, v in spec.allocatable.items()},
        **{
            f"{_NODE}label/{k}": v for k, v in node_labels(spec, spec.zones[0]).items() if k != ZONE
        },
        **{
            f"{_NODE}taint/{t['key']}": f"{t.get('value', '')}:{t.get('effect', 'NoSchedule')}"
            for t in spec.taints
        },
    }
    if spec.kind == "eks-nodegroup":
        tags |= {"eks:cluster-name": cluster, "eks:nodegroup-name": spec.name}
    return tags


def _passes(tags: Mapping[str, str], wanted: Parameters) -> bool:
    name, values = wanted["Name"], wanted.get("Values", [])
    if name == "tag-key":
        return any(key in tags for key in values)
    if name == "tag-value":
        return any(value in tags.values() for value in values)
    if name.startswith("tag:"):
        return tags.get(name.removeprefix("tag:")) in values
    raise AwsError("ValidationError", f"the drill's fleet knows no filter '{name}'")


def _instance(machine: Machine) -> dict[str, Any]:
    return {
        "InstanceId": machine.id,
        "InstanceType": machine.group.instance_type,
        "AvailabilityZone": machine.zone,
        "LifecycleState": _LIFE[machine.state],
        "HealthStatus": "Healthy",
        "ProtectedFromScaleIn": False,
    }


def _template(named: Named) -> dict[str, str]:
    return {
        "LaunchTemplateId": f"lt-{named.name}",
        "LaunchTemplateName": named.name,
        "Version": "1",
    }


def _tokens(machine: Machine) -> Iterator[str]:
    """Yield the tokens of the lifecycle actions that events told of."""
    for kind, told in machine.notices:
        if kind == "lifecycle-terminate":
            yield identity(machine, "token", told.replace(microsecond=0))


def _started(named: Named, machine: Machine) -> dict[str, Any]:
    status = "InProgress" if machine.state == "pending" else "Successful"
    return _activity(named, machine.id, machine.launched, status)


def _failed(named: Named, now: datetime) -> dict[str, Any]:
    words = (
        f"Could not launch instances. InsufficientInstanceCapacity - We currently do not have "
        f"sufficient {named.group.spec.instance_type} capacity. Launching EC2 instance failed."
    )
    return {**_activity(named, "refused", now, "Failed"), "StatusMessage": words}


def _activity(named: Named, what: str, start: datetime, status: str) -> dict[str, Any]:
    return {
        "ActivityId": f"{named.name}-{what}",
        "AutoScalingGroupName": named.name,
        "Description": f"Instance {what}",
        "Cause": "a drill",
        "StartTime": start,
        "StatusCode": status,
        "Progress": 100 if status == "Successful" else 0,
    }
