"""All node groups of one cluster, of whatever kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

from plimsoll.adapters.aws_errors import code_of, translate, translated
from plimsoll.adapters.ec2 import Ec2Instances
from plimsoll.adapters.kubernetes import calls
from plimsoll.adapters.nodegroups import asg, eks, karpenter, templates
from plimsoll.adapters.nodegroups.account import Account
from plimsoll.adapters.nodegroups.branch_interfaces import POD_ENI
from plimsoll.adapters.nodegroups.kind import Access, Kind, Warn
from plimsoll.domain.errors import BadInput, NotFound, Refused
from plimsoll.domain.interruptions import LifecycleHook
from plimsoll.domain.kubernetes import Node
from plimsoll.domain.node_groups import NodeGroup

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws
    from plimsoll.adapters.kubernetes.calls import Call
    from plimsoll.adapters.kubernetes.requests import Requests
    from plimsoll.services.ports import Clock

KINDS: Final[Mapping[str, type[Kind]]] = {
    asg.NAME: asg.AutoScalingGroups,
    eks.NAME: eks.ManagedNodeGroups,
    karpenter.NAME: karpenter.NodePools,
}
"""The kinds of node groups, by name."""
ASKED: Final = {name: kind for name, kind in KINDS.items() if not kind.calls}
"""Those that AWS knows alone: they can be asked, and the cluster's API need not be."""

CALLS: Final[tuple[Call, ...]] = (
    *calls.CALLS,
    *(call for kind in KINDS.values() for call in kind.calls),
)
"""Every call to a cluster: Plimsoll's own, and those of its kinds of node groups."""


class AwsNodeGroups:
    """Implements `plimsoll.services.ports.NodeGroups`. Keep one for each cluster: it remembers.

    Args:
        aws: The clients of the cluster's region.
        cluster: The name in tags, and in EKS.
        clock: Tells when what is remembered is old.
        api: Returns the cluster's API, for the kinds that are asked through it.
        warn: Called with what went another way than it should.
        kinds: Those that are read.
    """

    def __init__(  # noqa: PLR0913 - what it is made of, and which kinds
        self,
        aws: Aws,
        cluster: str,
        clock: Clock,
        *,
        api: Callable[[], Requests],
        warn: Warn = lambda _: None,
        kinds: Mapping[str, type[Kind]] = KINDS,
    ) -> None:
        self._account = Account(aws, clock)
        self._instances = Ec2Instances(aws, clock)
        self._cluster = cluster
        access = Access(account=self._account, api=api, cluster=cluster, warn=warn)
        self._kinds: Mapping[str, Kind] = {name: kind(access) for name, kind in kinds.items()}

    def list(self, nodes: Sequence[Node]) -> Sequence[NodeGroup]:
        """Return the groups of the cluster; existing nodes tell what a new one will be like."""
        found = [group for kind in self._kinds.values() for group in kind.list(nodes)]
        if not any(POD_ENI in dict(node.allocatable.extended) for node in nodes):
            # Nodes get them only where ENABLE_POD_ENI is set; else each new node would be waited for in vain.
            found = [_without_branch_interfaces(group) for group in found]
        return sorted(found, key=lambda group: (group.kind, group.name))

    def grow(self, group: NodeGroup, add: int, zone: str | None, token: str) -> int:
        """Ask for more nodes and return how many were promised; never lowers anything.

        Launches instances where the endpoint and the group allow it, else raises the desired
        capacity from a fresh read. The same token asks only once.

        Raises:
            Refused: no capacity, no right, or the group is at its maximum.
            Throttled, Conflict: try again.
        """
        if group.kind not in self._kinds:
            raise BadInput(f"node group {group.name} is of an unknown kind, {group.kind}")
        if add < 1:
            return 0
        return self._kinds[group.kind].grow(group, add, zone, token)

    def heartbeat(self, hook: LifecycleHook, instance: str) -> None:
        """Let an instance wait for its hook once more as long as the hook's timeout.

        Raises:
            NotFound: the action is over.
            Refused: the tags of the instance name another cluster.
        """
        with self._changing(instance, f"send a heartbeat to the hook {hook.name} for {instance}"):
            self._account.aws.autoscaling.record_lifecycle_action_heartbeat(
                AutoScalingGroupName=hook.group, LifecycleHookName=hook.name, InstanceId=instance
            )

    def complete_lifecycle(self, hook: LifecycleHook, instance: str) -> None:
        """Let an instance that is drained be terminated at once.

        Raises:
            NotFound: the action is over.
            Refused: the tags of the instance name another cluster.
        """
        what = f"complete the lifecycle action {hook.name} of {instance} in {hook.group}"
        with self._changing(instance, what):
            self._account.aws.autoscaling.complete_lifecycle_action(
                AutoScalingGroupName=hook.group,
                LifecycleHookName=hook.name,
                InstanceId=instance,
                LifecycleActionResult="CONTINUE",
            )

    def terminate(self, instance: str, *, decrement: bool) -> None:
        """Terminate an instance, and lower the desired capacity of its group; else it launches another.

        Raises:
            NotFound: it is gone, belongs to no group, or this would leave less than the minimum.
            Refused: its tags name another cluster.
        """
        with self._changing(instance, f"terminate {instance} in its group"):
            self._account.aws.autoscaling.terminate_instance_in_auto_scaling_group(
                InstanceId=instance, ShouldDecrementDesiredCapacity=decrement
            )

    @contextmanager
    def _changing(self, instance: str, what: str) -> Iterator[None]:
        """Ask EC2 whose an instance is, since a Node may say of itself what it likes; then change it."""
        # Asked before each change: tags may change, and a wrong termination cannot be undone.
        said = self._instances.describe([instance]).get(instance)
        if said is None:
            raise NotFound(f"EC2 does not know {instance}")
        if said.is_of_another(self._cluster):
            raise Refused(
                f"the tags of {instance} name cluster {said.cluster_name()}, and a Node of "
                f"{self._cluster} claims it: look at that Node"
            )
        with translated(what):
            try:
                yield
            except ClientError as error:
                if code_of(error) == "ValidationError":  # it knows no such action, or instance
                    raise NotFound(str(translate(error, what))) from error
                raise


def _without_branch_interfaces(group: NodeGroup) -> NodeGroup:
    if group.template is None:
        return group
    return replace(group, template=templates.without_branch_interfaces(group.template))
