"""The AWS side of a cluster: where EKS says it is, who may come to it, and which node groups may grow."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from plimsoll.adapters.aws_errors import translated
from plimsoll.adapters.nodegroups import AwsNodeGroups, asg, eks
from plimsoll.adapters.nodegroups.groups import ASKED
from plimsoll.domain.errors import NotFound, Refused
from plimsoll.domain.kubernetes import GROW, GROW_SET_BY, SET_BY_ADD
from plimsoll.domain.node_groups import NodeGroup
from plimsoll.domain.registry import Cluster
from plimsoll_cli import stack as stacks
from plimsoll_cli.probes.kubernetes import GROUP

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws
    from plimsoll.adapters.kubernetes.requests import Requests
    from plimsoll.services.ports import Clock


GROW_TAGS: Final[Mapping[str, str]] = {GROW: "true", GROW_SET_BY: SET_BY_ADD}
"""The tags of a node group that `clusters add` lets Plimsoll grow: the permission, and who gave it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EksCluster:
    """A cluster as EKS describes it."""

    url: str
    ca: str
    """PEM."""
    entries: bool
    """Whether it has access entries; else only its ConfigMap `aws-auth` says who is in which group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedGroup:
    """A node group, as the tag that lets Plimsoll grow it sees it."""

    name: str
    resource: str
    """What carries the tag: the ARN of a managed node group, the name of an Auto Scaling group."""
    managed: bool
    may_grow: bool
    set_by_add: bool = False
    """Whether `clusters add` set that tag. Its version 0.3.0 did not say so on the group."""


class ClusterAccess(Protocol):
    """What commands read and change in AWS about a cluster.

    Each method raises a `PlimsollError` where AWS cannot be asked, or refuses.
    """

    def find(self, cluster: Cluster) -> EksCluster | None:
        """Return what EKS says of a cluster; None: it knows none of that name in this account and region."""

    def roles(self, cluster: Cluster) -> Sequence[str]:
        """Return the ARNs of the roles that come to a cluster."""

    def groups_of(self, cluster: Cluster, role: str) -> Sequence[str] | None:
        """Return the Kubernetes groups of a role's access entry; None: it has none."""

    def grant(self, cluster: Cluster, role: str) -> None:
        """Put a role into the group `plimsoll`, beside the groups that its access entry names."""

    def revoke(self, cluster: Cluster, role: str) -> None:
        """Take a role out of that group, and delete an access entry that names no other."""

    def node_groups(self, cluster: Cluster) -> Sequence[TaggedGroup]:
        """Return the node groups whose tags allow growth, or do not: not those of Karpenter."""

    def let_grow(self, cluster: Cluster, group: TaggedGroup, *, allowed: bool) -> None:
        """Set or remove the tag by which Plimsoll may grow a node group, and the one that says who set it."""


class AwsClusterAccess:
    """Implements `ClusterAccess` with the rights of whoever runs the command."""

    def __init__(self, aws: Aws, stack: str, clock: Clock) -> None:
        self._aws = aws
        self._stack = stack
        self._clock = clock

    def find(self, cluster: Cluster) -> EksCluster | None:
        """Ask EKS."""
        try:
            with translated(f"describe EKS cluster {cluster.name}"):
                found = self._eks(cluster).describe_cluster(name=cluster.name)["cluster"]
        except NotFound:
            return None
        return EksCluster(
            url=found.get("endpoint", ""),
            ca=b64decode(found.get("certificateAuthority", {}).get("data", "")).decode(),
            entries=found.get("accessConfig", {}).get("authenticationMode") != "CONFIG_MAP",
        )

    def roles(self, cluster: Cluster) -> Sequence[str]:
        """Ask CloudFormation; to a cluster in another account comes the one role that is assumed there."""
        return stacks.roles(self._aws, self._stack) if cluster.role is None else [cluster.role]

    def groups_of(self, cluster: Cluster, role: str) -> Sequence[str] | None:
        """Ask EKS: https://docs.aws.amazon.com/eks/latest/userguide/access-entries.html."""
        try:
            with translated(f"read the access entry of {role} in cluster {cluster.name}"):
                answer = self._eks(cluster).describe_access_entry(
                    clusterName=cluster.name, principalArn=role
                )
        except NotFound:
            return None
        return tuple(answer["accessEntry"].get("kubernetesGroups", ()))

    def grant(self, cluster: Cluster, role: str) -> None:
        """Create the access entry, or add the group to it."""
        groups = self.groups_of(cluster, role)
        eks = self._eks(cluster)
        write = eks.create_access_entry if groups is None else eks.update_access_entry
        with translated(f"put {role} into the group {GROUP} of cluster {cluster.name}"):
            write(
                clusterName=cluster.name,
                principalArn=role,
                kubernetesGroups=[*dict.fromkeys([*(groups or ()), GROUP])],
            )

    def revoke(self, cluster: Cluster, role: str) -> None:
        """Delete the access entry, or take the group from it."""
        groups = self.groups_of(cluster, role)
        if groups is None:
            return
        others = [group for group in groups if group != GROUP]
        entry = {"clusterName": cluster.name, "principalArn": role}
        with translated(f"take {role} out of the group {GROUP} of cluster {cluster.name}"):
            if others:
                self._eks(cluster).update_access_entry(**entry, kubernetesGroups=others)
            else:
                self._eks(cluster).delete_access_entry(**entry)

    def node_groups(self, cluster: Cluster) -> Sequence[TaggedGroup]:
        """Ask Auto Scaling and EKS."""
        groups = AwsNodeGroups(
            self._aws.of_cluster(cluster), cluster.name, self._clock, api=_no_api, kinds=ASKED
        )
        return [self._tagged(cluster, group) for group in groups.list(())]

    def let_grow(self, cluster: Cluster, group: TaggedGroup, *, allowed: bool) -> None:
        """Tag the node group itself where EKS manages it: IAM checks the tag there."""
        aws = self._aws.of_cluster(cluster)
        with translated(f"{'set' if allowed else 'remove'} the tag {GROW} of {group.name}"):
            if group.managed and allowed:
                aws.eks.tag_resource(resourceArn=group.resource, tags=GROW_TAGS)
            elif group.managed:
                aws.eks.untag_resource(resourceArn=group.resource, tagKeys=[*GROW_TAGS])
            else:
                auto_scaling = aws.autoscaling
                write = auto_scaling.create_or_update_tags if allowed else auto_scaling.delete_tags
                write(
                    Tags=[
                        {
                            "ResourceId": group.resource,
                            "ResourceType": "auto-scaling-group",
                            "Key": key,
                            "Value": value,
                            "PropagateAtLaunch": False,
                        }
                        for key, value in GROW_TAGS.items()
                    ]
                )

    def _tagged(self, cluster: Cluster, group: NodeGroup) -> TaggedGroup:
        managed = group.kind == eks.NAME
        tags: Mapping[str, str] = {}
        with translated(f"describe node group {group.name} of cluster {cluster.name}"):
            if managed:
                found = self._eks(cluster).describe_nodegroup(
                    clusterName=cluster.name, nodegroupName=group.name
                )["nodegroup"]
                resource, tags = found["nodegroupArn"], found.get("tags") or {}
            else:
                resource = group.name
                auto_scaling = self._aws.of_cluster(cluster).autoscaling
                for each in auto_scaling.describe_auto_scaling_groups(
                    AutoScalingGroupNames=[group.name]
                )["AutoScalingGroups"]:
                    tags = asg.tags_of(each)
        return TaggedGroup(
            name=group.name,
            resource=resource,
            managed=managed,
            may_grow=group.may_grow,
            set_by_add=tags.get(GROW_SET_BY) == SET_BY_ADD,
        )

    def _eks(self, cluster: Cluster) -> Any:
        return self._aws.of_cluster(cluster).eks


def _no_api() -> Requests:
    raise Refused("node groups that AWS knows are read from AWS alone")
