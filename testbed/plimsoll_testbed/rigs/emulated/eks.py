"""EKS's answers about the managed node groups of a drill."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from plimsoll.domain.kubernetes import GROW
from plimsoll_simulation.fake_aws.fleet import Fleet, Group
from plimsoll_simulation.fake_aws.machines import region_of
from plimsoll_simulation.scenario.events import ACCOUNT
from plimsoll_testbed.rigs.emulated.autoscaling import AutoScaling
from plimsoll_testbed.rigs.emulated.awswire import AwsError, Operation, Parameters

_EFFECTS: Final = {
    "NoSchedule": "NO_SCHEDULE",
    "NoExecute": "NO_EXECUTE",
    "PreferNoSchedule": "PREFER_NO_SCHEDULE",
}


class Eks:
    """Managed node groups."""

    def __init__(
        self, fleets: Sequence[Fleet], groups: AutoScaling, clock: Callable[[], datetime]
    ) -> None:
        self._fleets = {fleet.cluster: fleet for fleet in fleets}
        self._groups = groups
        self._clock = clock
        self._updates: dict[str, Mapping[str, Any]] = {}
        self._tags: dict[str, dict[str, str]] = defaultdict(lambda: {GROW: "true"})
        """ARN of a node group -> its tags."""

    def answers(self) -> Mapping[str, Operation]:
        """Return the table of what is answered."""
        return {
            "eks:ListNodegroups": self._list,
            "eks:DescribeNodegroup": self._describe,
            "eks:UpdateNodegroupConfig": self._update,
            "eks:TagResource": self._tag,
            "eks:UntagResource": self._untag,
        }

    def _list(self, parameters: Parameters) -> Mapping[str, Any]:
        groups = self._fleet(parameters).groups.values()
        return {"nodegroups": [g.spec.name for g in groups if g.spec.kind == "eks-nodegroup"]}

    def _describe(self, parameters: Parameters) -> Mapping[str, Any]:
        fleet, group = self._find(parameters)
        spec = group.spec
        arn = f"arn:aws:eks:{region_of(spec.zones[0])}:{ACCOUNT}:nodegroup/{fleet.cluster}/{spec.name}/drill"
        return {
            "nodegroup": {
                "nodegroupName": spec.name,
                "nodegroupArn": arn,
                "clusterName": fleet.cluster,
                "status": "ACTIVE",
                "capacityType": "SPOT" if spec.capacity == "spot" else "ON_DEMAND",
                "scalingConfig": _scaling(group),
                "instanceTypes": [spec.instance_type],
                "subnets": [f"subnet-{zone}" for zone in spec.zones],
                "labels": dict(spec.labels),
                "tags": self._tags[arn],
                "taints": [
                    {
                        "key": t["key"],
                        "value": t.get("value", ""),
                        "effect": _EFFECTS[t.get("effect", "NoSchedule")],
                    }
                    for t in spec.taints
                ],
                "resources": {
                    "autoScalingGroups": [{"name": self._groups.name_of(fleet.cluster, spec.name)}]
                },
                "health": {"issues": list(_issues(group))},
            }
        }

    def _update(self, parameters: Parameters) -> Mapping[str, Any]:
        token = parameters.get("clientRequestToken", "")
        if token in self._updates:
            return self._updates[token]
        fleet, group = self._find(parameters)
        wanted = parameters.get("scalingConfig", {}).get("desiredSize", group.desired)
        if wanted < group.desired or set(parameters) & {"labels", "taints"}:
            raise AwsError(
                "InvalidParameterException",
                f"the drill's fleet only grows: {group.spec.name} has {group.desired} nodes",
            )
        if wanted > group.spec.max:
            raise AwsError(
                "InvalidParameterException",
                f"desired capacity {wanted} can't be greater than max size {group.spec.max}",
            )
        fleet.raise_desired(group.spec.name, wanted, self._clock())
        answer = {
            "update": {
                "id": f"{group.spec.name}-{wanted}",
                "status": "InProgress",
                "type": "ConfigUpdate",
                "createdAt": self._clock(),
                "errors": [],
            }
        }
        if token:
            self._updates[token] = answer
        return answer

    def _tag(self, parameters: Parameters) -> Mapping[str, Any]:
        self._tags[parameters["resourceArn"]] |= parameters["tags"]
        return {}

    def _untag(self, parameters: Parameters) -> Mapping[str, Any]:
        for key in parameters["tagKeys"]:
            self._tags[parameters["resourceArn"]].pop(key, None)
        return {}

    def _fleet(self, parameters: Parameters) -> Fleet:
        name = parameters["clusterName"]
        if name not in self._fleets:
            raise AwsError("ResourceNotFoundException", f"No cluster found for name: {name}.")
        return self._fleets[name]

    def _find(self, parameters: Parameters) -> tuple[Fleet, Group]:
        fleet, name = self._fleet(parameters), parameters["nodegroupName"]
        group = fleet.groups.get(name)
        if group is None or group.spec.kind != "eks-nodegroup":
            raise AwsError("ResourceNotFoundException", f"No node group found for name: {name}.")
        return fleet, group


def _issues(group: Group) -> Iterator[dict[str, Any]]:
    """Yield what keeps nodes that are wanted from coming, in EKS's words."""
    if group.failed is not None and len(group.alive) < group.desired:
        words = f"{group.failed[1].words} Launching EC2 instance failed."
        yield {
            "code": "AsgInstanceLaunchFailures",
            "message": words,
            "resourceIds": [group.spec.name],
        }


def _scaling(group: Group) -> dict[str, int]:
    return {"minSize": 0, "maxSize": group.spec.max, "desiredSize": group.desired}
