"""Auto Scaling's answers about the groups of a drill.

A managed node group of EKS stands on an Auto Scaling group of another name, as on AWS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from plimsoll.domain.errors import NotFound
from plimsoll_simulation.fake_aws.fleet import Fleet
from plimsoll_simulation.fake_aws.launch_refusals import LaunchRefused
from plimsoll_simulation.fake_aws.machines import region_of
from plimsoll_simulation.scenario.events import ACCOUNT
from plimsoll_testbed.rigs.emulated import autoscaling_terms as terms
from plimsoll_testbed.rigs.emulated.awswire import AwsError, Operation, Parameters


class AutoScaling:
    """Groups, their instances, and what can be asked of them."""

    def __init__(self, fleets: Sequence[Fleet], clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._groups = {named.name: named for named in terms.named_groups(fleets)}
        self._tags = {name: dict(terms.tags_of(named)) for name, named in self._groups.items()}
        self._asked: dict[str, tuple[Parameters, Mapping[str, Any]]] = {}

    def name_of(self, cluster: str, group: str) -> str:
        """Return the name of a node group's Auto Scaling group."""
        return next(
            n.name
            for n in self._groups.values()
            if (n.fleet.cluster, n.group.spec.name) == (cluster, group)
        )

    def answers(self) -> Mapping[str, Operation]:
        """Return the table of what is answered."""
        table: dict[str, Operation] = {
            "CompleteLifecycleAction": self._complete,
            "CreateOrUpdateTags": partial(self._tag, tagged=True),
            "DeleteTags": partial(self._tag, tagged=False),
            "DescribeAutoScalingGroups": self._describe,
            "DescribeLifecycleHooks": self._hooks,
            "DescribeScalingActivities": self._activities,
            "LaunchInstances": self._launch,
            "RecordLifecycleActionHeartbeat": self._heartbeat,
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
            and all(terms.passes(self._tags[n.name], f) for f in parameters.get("Filters", []))
        ]
        return {"AutoScalingGroups": found}

    def _tag(self, parameters: Parameters, *, tagged: bool) -> Mapping[str, Any]:
        for tag in parameters["Tags"]:
            if tag["ResourceId"] not in self._tags:
                raise AwsError("ValidationError", f"there is no such group: {tag}")
            tags = self._tags[tag["ResourceId"]]
            if tagged:
                tags[tag["Key"]] = tag["Value"]
            else:
                tags.pop(tag["Key"], None)
        return {}

    def _template_versions(self, parameters: Parameters) -> Mapping[str, Any]:
        wanted = {parameters.get("LaunchTemplateId"), parameters.get("LaunchTemplateName")}
        for named in self._groups.values():
            template = terms.template(named)
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
        hooks = [
            {
                "LifecycleHookName": hook.name,
                "AutoScalingGroupName": named.name,
                "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
                "HeartbeatTimeout": int(hook.timeout.total_seconds()),
                "DefaultResult": "ABANDON",
            }
            for hook in dict.fromkeys(hook for m in named.group.alive for hook in m.held)
        ]
        return {"LifecycleHooks": hooks}

    def _activities(self, parameters: Parameters) -> Mapping[str, Any]:
        return {"Activities": list(terms.launches(self._find(parameters)))}

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

    def _launched(self, named: terms.Named, parameters: Parameters) -> Mapping[str, Any]:
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
        except LaunchRefused as error:
            told = {"ErrorCode": error.code, "ErrorMessage": error.words}
            answer["Errors"] = [{**pool, "AvailabilityZone": error.zone, **told}]
            return answer
        for zone in dict.fromkeys(m.zone for m in started):
            ids = [m.id for m in started if m.zone == zone]
            answer["Instances"].append({**pool, "AvailabilityZone": zone, "InstanceIds": ids})
        return answer

    def _complete(self, parameters: Parameters) -> Mapping[str, Any]:
        return self._hooked(parameters, Fleet.complete)

    def _heartbeat(self, parameters: Parameters) -> Mapping[str, Any]:
        return self._hooked(parameters, Fleet.heartbeat)

    def _hooked(
        self, parameters: Parameters, act: Callable[[Fleet, str, str, datetime], None]
    ) -> Mapping[str, Any]:
        """Act on the lifecycle hook for which an instance waits."""
        instance, hook = parameters["InstanceId"], parameters["LifecycleHookName"]
        try:
            act(self._find(parameters).fleet, instance, hook, self._clock())
        except NotFound as error:
            raise AwsError("ValidationError", str(error)) from error
        return {}

    def _terminate(self, parameters: Parameters) -> Mapping[str, Any]:
        decrement = bool(parameters.get("ShouldDecrementDesiredCapacity"))
        for named in self._groups.values():
            for machine in named.group.alive:
                if machine.id == parameters["InstanceId"]:
                    named.fleet.end(machine.id, self._clock(), decrement=decrement)
                    return {"Activity": terms.termination(named, machine.id, self._clock())}
        raise AwsError("ValidationError", f"Instance Id not found - {parameters['InstanceId']}")

    def _find(self, parameters: Parameters) -> terms.Named:
        name = parameters["AutoScalingGroupName"]
        if name not in self._groups:
            raise AwsError("ValidationError", f"AutoScalingGroup name not found - {name}")
        return self._groups[name]

    def _group(self, named: terms.Named) -> Mapping[str, Any]:
        spec = named.group.spec
        return {
            "AutoScalingGroupName": named.name,
            "AutoScalingGroupARN": (
                f"arn:aws:autoscaling:{region_of(spec.zones[0])}:{ACCOUNT}:autoScalingGroup:"
                f"{named.fleet.cluster}:autoScalingGroupName/{named.name}"
            ),
            "LaunchTemplate": terms.template(named),
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
                {**terms.instance(m), "LaunchTemplate": terms.template(named)}
                for m in named.group.alive
            ],
            "Tags": [
                {
                    "Key": key,
                    "Value": value,
                    "ResourceId": named.name,
                    "ResourceType": "auto-scaling-group",
                    "PropagateAtLaunch": True,
                }
                for key, value in self._tags[named.name].items()
            ],
        }
