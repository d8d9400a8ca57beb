"""Auto Scaling groups that are tagged for the cluster.

Found by the tag `kubernetes.io/cluster/<name>` or `k8s.io/cluster-autoscaler/<name>`; those that
belong to EKS managed node groups are left to their own kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal
from zlib import crc32

from botocore.exceptions import ClientError

from plimsoll.adapters.aws_errors import (
    UNKNOWN_OPERATION,
    code_of,
    kind_of,
    message_of,
    translated,
)
from plimsoll.adapters.nodegroups import templates
from plimsoll.adapters.nodegroups.instance_types import (
    instance_types_of,
    launch_template_of,
    overrides_of,
)
from plimsoll.adapters.nodegroups.kind import Access, Warn, target_of
from plimsoll.adapters.nodegroups.launches import launches_of
from plimsoll.adapters.nodegroups.refusals import refusal_of
from plimsoll.domain.errors import (
    BadInput,
    MissingRights,
    NotFound,
    PlimsollError,
    Refused,
    Throttled,
)
from plimsoll.domain.interruptions import LifecycleHook
from plimsoll.domain.kubernetes import CAPACITY_LABELS, GROW, RENEW, Node
from plimsoll.domain.node_groups import (
    LaunchesThrottled,
    NodeGroup,
    NotGrown,
    OtherRefusal,
    clusters_of,
    is_our_hook,
)

if TYPE_CHECKING:
    from plimsoll.adapters.kubernetes.calls import Call
    from plimsoll.adapters.nodegroups.account import Account

NAME: Final = "asg"
MOST_AT_ONCE: Final = 100
"""Instances that one LaunchInstances may ask for."""
_DEFAULT_TIMEOUT: Final = 3600
_LONGEST: Final = 48 * 3600
"""Seconds, where a hook does not say: https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_LifecycleHook.html"""
_COMING: Final = ("Pending", "InService")
_FALL_BACK: Final = UNKNOWN_OPERATION | {
    "IdempotentParameterMismatch",
    "IdempotentParameterMismatchError",
    "ValidationError",
    "ValidationException",
}
"""LaunchInstances is not known here, or not for this group; or its token has asked for another number
before, and a desired capacity is the same however often it is set."""
_SILENT: Final = "nothing was launched, and nothing says why"


class AutoScalingGroups:
    """The kind `asg`."""

    calls: ClassVar[tuple[Call, ...]] = ()

    def __init__(self, access: Access) -> None:
        self._account = access.account
        self._cluster = access.cluster
        self._warn = access.warn
        self._launches = True
        """False once the endpoint said that it does not know LaunchInstances."""

    def list(self, nodes: Sequence[Node]) -> Sequence[NodeGroup]:
        """Return the groups; existing nodes tell what a new one will be like."""
        tags = [
            f"{prefix}/{self._cluster}"
            for prefix in ("kubernetes.io/cluster", "k8s.io/cluster-autoscaler")
        ]
        with translated(f"list the Auto Scaling groups of cluster {self._cluster}"):
            pages = self._account.aws.autoscaling.get_paginator(
                "describe_auto_scaling_groups"
            ).paginate(Filters=[{"Name": "tag-key", "Values": tags}])
            found = [group for page in pages for group in page["AutoScalingGroups"]]
        return [
            self._read(group, nodes)
            for group in found
            # `Status` stands only while a group is being deleted.
            # https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_AutoScalingGroup.html
            if not group.get("Status") and self._is_ours(tags_of(group))
        ]

    def _is_ours(self, tags: Mapping[str, str]) -> bool:
        """Whether a group is neither EKS's nor owned by another cluster that shares it with this one."""
        return "eks:nodegroup-name" not in tags and self._cluster in (
            clusters_of(tags) or [self._cluster]
        )

    def grow(self, group: NodeGroup, add: int, zone: str | None, token: str) -> int:
        """Ask for more nodes and return how many were promised.

        Raises:
            NotGrown: no capacity, a quota, or the group is at its maximum: its refusals say.
            Refused: no right, for example.
            Conflict: the same token is being worked on, or asked for something else.
        """
        # LaunchInstances first: it adds to the group whatever
        # others ask, and its answer says how many instances came.
        if group.launchable and self._knows_launch():
            promised = self._launch(group, add, zone, token)
            if promised is not None:
                return promised
        return self._raise_desired(group, add)

    def _knows_launch(self) -> bool:
        known = self._account.aws.autoscaling.meta.service_model.operation_names
        return self._launches and "LaunchInstances" in known

    def _launch(self, group: NodeGroup, add: int, zone: str | None, token: str) -> int | None:
        """Launch at once and additively; None where it cannot be done this way.

        The call takes one zone. Where the caller leaves it open the token decides, so that the same
        ask sent twice is the same.
        """
        zone = zone or group.zones[crc32(token.encode()) % len(group.zones)]
        what = f"launch {add} instances of {group.name} in {zone}"
        try:
            with translated(what):
                try:
                    answer = self._account.aws.autoscaling.launch_instances(
                        AutoScalingGroupName=group.name,
                        RequestedCapacity=min(add, MOST_AT_ONCE),
                        ClientToken=token,
                        AvailabilityZones=[zone],
                        # With the other strategy a failed launch raises the desired capacity,
                        # and Auto Scaling goes on trying while Plimsoll asks another group.
                        # https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_LaunchInstances.html
                        RetryStrategy="none",
                    )
                except ClientError as error:
                    code = code_of(error)
                    if code not in _FALL_BACK:
                        said = refusal_of(code, message_of(error), self._account.now(), zone=zone)
                        if isinstance(said, LaunchesThrottled | OtherRefusal):
                            raise
                        raise NotGrown(what, said) from error
                    if code in UNKNOWN_OPERATION:
                        self._launches = False
                    return None
            promised = sum(len(part.get("InstanceIds", ())) for part in answer.get("Instances", ()))
            if not promised:
                self._refuse(what, answer.get("Errors") or [{"ErrorMessage": _SILENT}])
        except MissingRights as error:
            self._warn(f"{str(error).rstrip('.')}. The desired capacity is raised instead.")
            return None
        return promised

    def _refuse(self, what: str, errors: Sequence[Mapping[str, Any]]) -> None:
        """Raise what the errors in the answer to a launch say."""
        now = self._account.now()
        refusals = [
            refusal_of(
                str(e.get("ErrorCode") or ""),
                str(e.get("ErrorMessage") or ""),
                now,
                zone=e.get("AvailabilityZone"),
                instance_type=e.get("InstanceType"),
            )
            for e in errors
        ]
        kinds = {kind_of(str(e.get("ErrorCode"))) for e in errors}
        if MissingRights in kinds:
            raise MissingRights(str(NotGrown(what, *refusals)))
        if any(isinstance(refusal, LaunchesThrottled) for refusal in refusals):
            raise Throttled(str(NotGrown(what, *refusals)))
        raise NotGrown(what, *refusals)

    def _raise_desired(self, group: NodeGroup, add: int) -> int:
        # SetDesiredCapacity takes no condition: it overwrites a value that somebody else
        # set after this read. The read comes right before the call to keep that time short.
        # https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_SetDesiredCapacity.html
        fresh = self._account.auto_scaling_groups([group.name]).get(group.name)
        if fresh is None:
            raise NotFound(f"there is no Auto Scaling group {group.name}")
        target = target_of(group, add, fresh["MaxSize"], self._account.now())
        if fresh["DesiredCapacity"] >= target:
            return target - group.desired
        try:
            with translated(f"raise the desired capacity of {group.name} to {target}"):
                self._account.aws.autoscaling.set_desired_capacity(
                    AutoScalingGroupName=group.name, DesiredCapacity=target, HonorCooldown=False
                )
        # Auto Scaling answers ValidationError if the group refuses the size now: the request itself is well formed.
        except BadInput as error:
            raise Refused(str(error)) from error
        return target - group.desired

    def _read(self, group: Mapping[str, Any], nodes: Sequence[Node]) -> NodeGroup:
        waiting, hooks = hooks_of(self._account, [group], nodes, self._warn)
        template = launch_template_of(group)
        data = self._account.launch_template(template) if template else {}
        tags = tags_of(group)
        capacity = capacity_of(group, data, tags)
        types = instance_types_of(self._account, group, self._warn)
        instances = instances_of(group)
        weighted = any(o.get("WeightedCapacity") for o in overrides_of(group))
        node_template = templates.from_nodes([n for n in nodes if n.instance in instances])
        if node_template is None:
            infos = [i for i in map(self._account.instance_type, types) if i is not None]
            labels = {CAPACITY_LABELS[0]: capacity}
            told = templates.from_instance_types(infos, labels, disk_gib=disk_gib(data))
            node_template = templates.from_tags(tags, told)
        return NodeGroup(
            kind=NAME,
            name=group["AutoScalingGroupName"],
            capacity=capacity,
            zones=tuple(sorted(group["AvailabilityZones"])),
            desired=group["DesiredCapacity"],
            min_size=group["MinSize"],
            max_size=group["MaxSize"],
            instances=instances,
            zone_of=zones_of([group]),
            instance_types=types,
            subnets=subnets_of(group),
            image=data["ImageId"] if str(data.get("ImageId")).startswith("ami-") else None,
            # A weighted group counts units, not nodes: what a unit is, nobody can say beforehand.
            template=None if weighted else node_template,
            launchable=_is_launchable(group),
            launches=may_launch(group),
            # Of these a launch takes none: only a larger desired capacity does.
            warm=group.get("WarmPoolSize", 0),
            rebalances=bool(group.get("CapacityRebalance")),
            **launches_of(self._account, [group], group["DesiredCapacity"], nodes, self._warn),
            waiting=waiting,
            hooks=hooks,
            may_grow=tags.get(GROW) == "true",
            renew=tags.get(RENEW) == "true",
        )


def tags_of(group: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the tags of an Auto Scaling group."""
    return {tag["Key"]: tag.get("Value", "") for tag in group.get("Tags", ())}


def disk_gib(data: Mapping[str, Any]) -> int:
    """Return the largest volume that a launch template names: on the images of EKS the node keeps its files there."""
    volumes = (mapping.get("Ebs", {}) for mapping in data.get("BlockDeviceMappings") or ())
    return max(
        (int(v["VolumeSize"]) for v in volumes if v.get("VolumeSize")), default=templates.DISK_GIB
    )


def subnets_of(group: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ids of the subnets of an Auto Scaling group."""
    return tuple(filter(None, str(group.get("VPCZoneIdentifier") or "").split(",")))


def instances_of(group: Mapping[str, Any]) -> frozenset[str]:
    """Return the ids of the instances in service or on the way."""
    return frozenset(
        i["InstanceId"]
        for i in group.get("Instances", ())
        if str(i.get("LifecycleState", "InService")).startswith(_COMING)
    )


def zones_of(groups: Iterable[Mapping[str, Any]]) -> Mapping[str, str]:
    """Return the zones of the instances of Auto Scaling groups: told from the launch on, before a Node joins."""
    return {
        i["InstanceId"]: i["AvailabilityZone"]
        for group in groups
        for i in group.get("Instances", ())
        if i.get("AvailabilityZone")
    }


def capacity_of(
    group: Mapping[str, Any], data: Mapping[str, Any], tags: Mapping[str, str]
) -> Literal["on-demand", "spot"]:
    """Return what the next node of a group will be; a mix is no promise of on-demand: spot."""
    mixed = group.get("MixedInstancesPolicy")
    if mixed:
        share = mixed.get("InstancesDistribution", {}).get("OnDemandPercentageAboveBaseCapacity")
        # The default is 100. https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_InstancesDistribution.html
        return "on-demand" if share is None or share == 100 else "spot"  # noqa: PLR2004 - per cent
    if data:
        market = data.get("InstanceMarketOptions", {}).get("MarketType")
        return "spot" if market == "spot" else "on-demand"
    said = (tags.get(f"{templates.TAG}label/{label}", "") for label in CAPACITY_LABELS)
    return "spot" if any(s.lower() == "spot" for s in said) else "on-demand"


def hooks_of(
    account: Account, groups: Sequence[Mapping[str, Any]], nodes: Sequence[Node], warn: Warn
) -> tuple[frozenset[str], tuple[LifecycleHook, ...]]:
    """Return which instances of Auto Scaling groups wait for hooks, and these; read if a node waits.

    What cannot be read is no hook: a drain goes on without.
    """
    ids = {node.instance for node in nodes}
    waiting, hooks = set[str](), list[LifecycleHook]()
    for group in groups:
        here = {i["InstanceId"] for i in group.get("Instances", ()) if _waits(i)} & ids
        if here:
            waiting |= here
            try:
                found = account.lifecycle_hooks(group["AutoScalingGroupName"])
            except PlimsollError as error:
                warn(str(error))
            else:
                hooks += map(_hook, filter(_ends_instances, found))
    return frozenset(waiting), tuple(hooks)


def _waits(instance: Mapping[str, Any]) -> bool:
    return str(instance.get("LifecycleState")) == "Terminating:Wait"


def _ends_instances(hook: Mapping[str, Any]) -> bool:
    return str(hook.get("LifecycleTransition")).endswith("TERMINATING")


def _hook(hook: Mapping[str, Any]) -> LifecycleHook:
    timeout = hook.get("HeartbeatTimeout") or _DEFAULT_TIMEOUT
    name = hook["LifecycleHookName"]
    return LifecycleHook(
        group=hook["AutoScalingGroupName"],
        name=name,
        timeout=timedelta(seconds=timeout),
        longest=timedelta(seconds=hook.get("GlobalTimeout") or min(_LONGEST, 100 * timeout)),
        ours=is_our_hook(name, hook.get("NotificationMetadata", "")),
    )


def may_launch(group: Mapping[str, Any]) -> bool:
    """Whether an Auto Scaling group may launch instances at all."""
    return all(p.get("ProcessName") != "Launch" for p in group.get("SuspendedProcesses", ()))


def _is_launchable(group: Mapping[str, Any]) -> bool:
    """Whether LaunchInstances may be tried: not with a mix of on-demand and spot instances.

    https://docs.aws.amazon.com/autoscaling/ec2/userguide/launch-instances-synchronously.html
    """
    if group.get("WarmPoolConfiguration"):
        return False
    if group.get("LaunchTemplate"):
        return True
    shares = group.get("MixedInstancesPolicy", {}).get("InstancesDistribution", {})
    if not launch_template_of(group):
        return False
    share = shares.get("OnDemandPercentageAboveBaseCapacity", 100)
    return share == 100 or (share == 0 and not shares.get("OnDemandBaseCapacity"))  # noqa: PLR2004 - per cent
