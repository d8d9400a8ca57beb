"""EKS managed node groups: grown through EKS, which owns their Auto Scaling groups.

What an Auto Scaling group says of desired capacity and instances counts, because an autoscaler may
have changed it behind EKS's back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.adapters.nodegroups import templates
from plimsoll.adapters.nodegroups.asg import (
    disk_gib,
    hooks_of,
    instances_of,
    may_launch,
    tags_of,
    zones_of,
)
from plimsoll.adapters.nodegroups.instance_types import (
    instance_types_of,
    launch_template_of,
    types_told,
)
from plimsoll.adapters.nodegroups.kind import Access, target_of
from plimsoll.adapters.nodegroups.launches import launches_of
from plimsoll.domain.errors import BadInput, NotFound, Refused
from plimsoll.domain.kubernetes import GROW, RENEW, Node, Taint
from plimsoll.domain.node_groups import NodeGroup, NodeTemplate

if TYPE_CHECKING:
    from plimsoll.adapters.kubernetes.calls import Call

NAME: Final = "eks-nodegroup"
LABEL: Final = "eks.amazonaws.com/nodegroup"
_ENDING_STATES: Final = {"DELETING", "CREATE_FAILED", "DELETE_FAILED"}
_EFFECTS: Final = {
    "NO_SCHEDULE": "NoSchedule",
    "NO_EXECUTE": "NoExecute",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
}


class ManagedNodeGroups:
    """The kind `eks-nodegroup`."""

    calls: ClassVar[tuple[Call, ...]] = ()

    def __init__(self, access: Access) -> None:
        self._account = access.account
        self._cluster = access.cluster
        self._warn = access.warn

    def list(self, nodes: Sequence[Node]) -> Sequence[NodeGroup]:
        """Return the groups; a cluster that is not an EKS cluster has none."""
        try:
            with translated(f"list the node groups of cluster {self._cluster}"):
                pages = self._account.aws.eks.get_paginator("list_nodegroups").paginate(
                    clusterName=self._cluster
                )
                found = [name for page in pages for name in page["nodegroups"]]
        except NotFound:
            return []
        described = [
            d for d in map(self._describe, found) if d and d.get("status") not in _ENDING_STATES
        ]
        # After EKS, because only its answer names the Auto Scaling groups.
        owned = self._account.auto_scaling_groups([n for d in described for n in _asgs(d)])
        return [self._read(d, [owned[n] for n in _asgs(d) if n in owned], nodes) for d in described]

    def grow(self, group: NodeGroup, add: int, zone: str | None, token: str) -> int:  # noqa: ARG002 - EKS chooses the zone
        """Raise the desired size; EKS itself remembers the token.

        Raises:
            NotGrown: the group is at its maximum, or EKS says no.
            Conflict: EKS is changing the group in another way.
        """
        # Read right before the call: EKS takes a size, not a difference. During another
        # update of the group it answers ResourceInUseException, which is a Conflict.
        # https://docs.aws.amazon.com/eks/latest/APIReference/API_UpdateNodegroupConfig.html
        fresh = self._describe(group.name)
        if fresh is None:
            raise NotFound(f"there is no node group {group.name} in cluster {self._cluster}")
        owned = self._account.auto_scaling_groups(_asgs(fresh))
        target = target_of(group, add, fresh["scalingConfig"]["maxSize"], self._account.now())
        if _desired(fresh, list(owned.values())) >= target:
            return target - group.desired
        try:
            with translated(f"raise the desired size of node group {group.name} to {target}"):
                self._account.aws.eks.update_nodegroup_config(
                    clusterName=self._cluster,
                    nodegroupName=group.name,
                    scalingConfig={"desiredSize": target},
                    clientRequestToken=token,
                )
        except BadInput as error:
            raise Refused(str(error)) from error
        return target - group.desired

    def _describe(self, name: str) -> Mapping[str, Any] | None:
        try:
            with translated(f"describe node group {name} of cluster {self._cluster}"):
                answer = self._account.aws.eks.describe_nodegroup(
                    clusterName=self._cluster, nodegroupName=name
                )
        except NotFound:
            return None
        return dict(answer["nodegroup"])

    def _read(
        self, group: Mapping[str, Any], owned: Sequence[Mapping[str, Any]], nodes: Sequence[Node]
    ) -> NodeGroup:
        name = group["nodegroupName"]
        mine = [n for n in nodes if n.labels.get(LABEL) == name]
        instances = frozenset(i for asg in owned for i in instances_of(asg))
        waiting, hooks = hooks_of(self._account, owned, nodes, self._warn)
        if not owned:
            instances = frozenset(n.instance for n in mine if n.instance is not None)
        return NodeGroup(
            kind=NAME,
            name=name,
            capacity="spot" if group.get("capacityType") == "SPOT" else "on-demand",
            zones=tuple(
                sorted(
                    {zone for asg in owned for zone in asg["AvailabilityZones"]}
                    or {n.zone for n in mine if n.zone is not None}
                )
            ),
            desired=_desired(group, owned),
            min_size=group["scalingConfig"].get("minSize", 0),
            max_size=group["scalingConfig"].get("maxSize", 0),
            instances=instances,
            zone_of=zones_of(owned),
            instance_types=self._types(group, owned),
            subnets=tuple(group.get("subnets") or ()),
            template=templates.from_nodes(mine) or self._template(group, owned),
            launches=all(map(may_launch, owned)),
            rebalances=any(asg.get("CapacityRebalance") for asg in owned),
            **launches_of(
                self._account,
                owned,
                _desired(group, owned),
                nodes,
                self._warn,
                health=()
                if group.get("status") == "UPDATING"  # what it says now is of the time before
                else (group.get("health") or {}).get("issues") or (),
            ),
            waiting=waiting,
            hooks=hooks,
            # Each tag is read where IAM checks it: EKS does not hand a node group's tags on.
            may_grow=(group.get("tags") or {}).get(GROW) == "true",
            renew=bool(owned) and all(tags_of(asg).get(RENEW) == "true" for asg in owned),
        )

    def _template(
        self, group: Mapping[str, Any], owned: Sequence[Mapping[str, Any]]
    ) -> NodeTemplate | None:
        infos = [self._account.instance_type(t) for t in self._types(group, owned)]
        labels = {
            **(group.get("labels") or {}),
            LABEL: group["nodegroupName"],
            "eks.amazonaws.com/capacityType": group.get("capacityType", "ON_DEMAND"),
        }
        if str(group.get("amiType")).startswith("WINDOWS"):
            labels["kubernetes.io/os"] = "windows"
        taints = [
            Taint(key=t["key"], value=t.get("value", ""), effect=_EFFECTS[t["effect"]])
            for t in group.get("taints") or ()
        ]
        base = templates.from_instance_types(
            [i for i in infos if i is not None],
            labels,
            taints,
            disk_gib=group.get("diskSize") or self._disk_gib(group, owned),
        )
        tags = {k: v for asg in owned for k, v in tags_of(asg).items()}
        return templates.from_tags(tags, base)

    def _types(
        self, group: Mapping[str, Any], owned: Sequence[Mapping[str, Any]]
    ) -> tuple[str, ...]:
        """Return the instance types: EKS names none of those that a launch template of the owner's tells."""
        named = tuple(group.get("instanceTypes") or ())
        if named:
            return named
        architectures = _architectures(group)
        found = [
            each
            for asg in owned
            for each in instance_types_of(self._account, asg, self._warn, architectures)
        ]
        if not found:
            used = _own_launch_template(group)
            data = self._account.launch_template(used) if used else {}
            found = [*types_told(self._account, data, self._warn, architectures, image=data)]
        return tuple(dict.fromkeys(found))

    def _disk_gib(self, group: Mapping[str, Any], owned: Sequence[Mapping[str, Any]]) -> int:
        """Return the volume by the launch templates that EKS makes of the owner's own; the least of several."""
        made = [*filter(None, map(launch_template_of, owned))]
        used = made or [*filter(None, [_own_launch_template(group)])]
        found = (disk_gib(self._account.launch_template(template)) for template in used)
        return min(found, default=templates.DISK_GIB)


def _own_launch_template(group: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the reference to the launch template that the owner gave to a node group, in the words of EC2."""
    told = group.get("launchTemplate")
    if not told:
        return None
    return {
        "LaunchTemplateId": told.get("id"),
        "LaunchTemplateName": told.get("name"),
        "Version": told.get("version"),
    }


def _architectures(group: Mapping[str, Any]) -> Sequence[str]:
    """Return the architecture that the type of a node group's image names; none for an image of the owner's."""
    kind = str(group.get("amiType"))
    names = {"ARM_64": "arm64", "x86_64": "x86_64"}
    return [name for part, name in names.items() if part in kind]


def _asgs(group: Mapping[str, Any]) -> Sequence[str]:
    return [a["name"] for a in (group.get("resources") or {}).get("autoScalingGroups") or ()]


def _desired(group: Mapping[str, Any], owned: Sequence[Mapping[str, Any]]) -> int:
    said = int(group["scalingConfig"].get("desiredSize", 0))
    if not owned:
        return said
    size = sum(int(asg["DesiredCapacity"]) for asg in owned)
    # While EKS carries an update out, the Auto Scaling group may not have it yet.
    return max(size, said) if group.get("status") == "UPDATING" else size
