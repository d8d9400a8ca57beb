"""Groups, instances and activities of a drill in Auto Scaling's words."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from plimsoll.domain.kubernetes import GROW, RENEW, ZONE
from plimsoll_simulation.fake_aws.fleet import AGE, Fleet, Group
from plimsoll_simulation.fake_aws.machines import Machine, node_labels
from plimsoll_testbed.rigs.emulated.awswire import AwsError, Parameters

_LIFE: Final = {"pending": "Pending", "running": "InService"}
_NODE: Final = "k8s.io/cluster-autoscaler/node-template/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A group under the name that Auto Scaling knows it by."""

    name: str
    fleet: Fleet
    group: Group


def named_groups(fleets: Sequence[Fleet]) -> Iterator[Named]:
    """Yield the groups that AWS keeps; a name that two clusters use gets its cluster before it."""
    names = Counter(name for fleet in fleets for name in fleet.groups)
    for fleet in fleets:
        for name, group in fleet.groups.items():
            known = name if names[name] == 1 else f"{fleet.cluster}-{name}"
            match group.spec.kind:
                case "asg":
                    yield Named(name=known, fleet=fleet, group=group)
                case "eks-nodegroup":
                    yield Named(name=f"eks-{known}", fleet=fleet, group=group)
                case "karpenter" | "static":
                    continue


def tags_of(named: Named) -> Mapping[str, str]:
    """Return the tags by which a group tells its cluster, and what its nodes will be."""
    cluster, spec = named.fleet.cluster, named.group.spec
    tags = {
        f"kubernetes.io/cluster/{cluster}": "owned",
        f"k8s.io/cluster-autoscaler/{cluster}": "owned",
        GROW: "true",
        RENEW: str(spec.renew).lower(),
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


def passes(tags: Mapping[str, str], wanted: Parameters) -> bool:
    """Whether tags pass a filter; a filter that is not known is an error."""
    if wanted["Name"] != "tag-key":
        raise AwsError("ValidationError", f"the drill's fleet knows no filter '{wanted['Name']}'")
    return not tags.keys().isdisjoint(wanted["Values"])


def instance(machine: Machine) -> dict[str, Any]:
    """Return a machine as a member of its group."""
    return {
        "InstanceId": machine.id,
        "InstanceType": machine.group.instance_type,
        "AvailabilityZone": machine.zone,
        "LifecycleState": "Terminating:Wait"
        if machine.waits
        else _LIFE.get(machine.state, "Terminating"),
        "HealthStatus": "Healthy",
        "ProtectedFromScaleIn": False,
    }


def template(named: Named) -> dict[str, str]:
    """Return the reference to a group's launch template."""
    return {
        "LaunchTemplateId": f"lt-{named.name}",
        "LaunchTemplateName": named.name,
        "Version": "1",
    }


def launches(named: Named) -> Iterator[dict[str, Any]]:
    """Yield the launches of a group as scaling activities, the newest first.

    The shape of a failed one: https://docs.aws.amazon.com/autoscaling/ec2/userguide/CHAP_Troubleshooting.html
    """
    started = [m for m in named.group.machines if m.ready - m.launched < AGE]
    found = [
        {
            "ActivityId": f"{named.name}-{machine.id}-launch",
            "Description": f"Launching a new EC2 instance: {machine.id}",
            "StartTime": machine.launched,
            "StatusCode": "Successful" if machine.joined else "InProgress",
        }
        for machine in started
    ]
    if named.group.failed is not None:
        at, why = named.group.failed
        found.append(
            {
                "ActivityId": f"{named.name}-{at:%H%M%S}-failed",
                "Description": f"Launching a new EC2 instance.  Status Reason: {why.words}",
                "StartTime": at,
                "StatusCode": "Failed",
                "StatusMessage": f"{why.words} Launching EC2 instance failed.",
                "Details": json.dumps({"Availability Zone": why.zone}),
            }
        )
    for activity in sorted(found, key=lambda a: a["StartTime"], reverse=True):
        yield {"AutoScalingGroupName": named.name, "Cause": "a drill", **activity}


def termination(named: Named, instance: str, start: datetime) -> dict[str, Any]:
    """Return the scaling activity that ends an instance."""
    return {
        "ActivityId": f"{named.name}-{instance}",
        "AutoScalingGroupName": named.name,
        "Cause": "a drill",
        "StartTime": start,
        "StatusCode": "InProgress",
    }
