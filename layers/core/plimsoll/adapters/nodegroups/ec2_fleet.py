"""EC2 fleets of the type `maintain` that are tagged for the cluster: grown, and shrunk, by their target capacity.

A fleet has no maximum of its own, so that its owner states one in a tag. It chooses type and zone, and
tries for as long as it takes; what became of that is told by its history.
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/manage-ec2-fleet.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.adapters.nodegroups import templates
from plimsoll.adapters.nodegroups.kind import Access, target_of
from plimsoll.adapters.nodegroups.refusals import refusal_of
from plimsoll.domain.errors import BadInput, NotFound, PlimsollError, Refused
from plimsoll.domain.kubernetes import CAPACITY_LABELS, GROW, RENEW, Node
from plimsoll.domain.node_groups import NodeGroup, Refusal

if TYPE_CHECKING:
    from plimsoll.adapters.kubernetes.calls import Call

NAME: Final = "ec2-fleet"
MAXIMUM: Final = "plimsoll.dev/maximum"
"""Tag of a fleet: how many instances it may have. Without one it is not grown."""
OF_FLEET: Final = "aws:ec2:fleet-id"
"""Tag that EC2 itself gives to the instances of a fleet; those of Auto Scaling groups have it too."""
OF_GROUP: Final = "aws:autoscaling:groupName"
_LIVE: Final = {"active", "modifying", "submitted"}
_TOLD: Final = timedelta(minutes=15)
"""How far back the history of a fleet is read."""


class Ec2Fleets:
    """The kind `ec2-fleet`."""

    calls: ClassVar[tuple[Call, ...]] = ()

    def __init__(self, access: Access) -> None:
        self._account = access.account
        self._cluster = access.cluster
        self._warn = access.warn

    def list(self, nodes: Sequence[Node]) -> Sequence[NodeGroup]:
        """Return the fleets of the cluster. Where they cannot be read there are none: others are asked."""
        try:
            return [
                self._read(fleet, nodes)
                for fleet in self._describe([])
                if fleet.get("Type") == "maintain"
                and fleet.get("FleetState") in _LIVE
                and f"kubernetes.io/cluster/{self._cluster}" in _tags(fleet)
            ]
        except PlimsollError as error:
            self._warn(f"{str(error).rstrip('.')}. EC2 fleets are not asked.")
            return []

    def grow(self, group: NodeGroup, add: int, zone: str | None, token: str) -> int:  # noqa: ARG002 - the fleet chooses the zone, and a target is the same however often it is set
        """Raise the target capacity, from a fresh read.

        Raises:
            NotGrown: the fleet is at the maximum that its owner states.
            Refused: no right, or it cannot be changed.
        """
        fresh = next(iter(self._describe([group.name])), None)
        if fresh is None:
            raise NotFound(f"there is no EC2 fleet {group.name}")
        target = target_of(group, add, _maximum(fresh), self._account.now())
        if _desired(fresh) < target:
            try:
                with translated(f"raise the target capacity of {group.name} to {target}"):
                    self._account.aws.ec2.modify_fleet(
                        FleetId=group.name,
                        TargetCapacitySpecification={"TotalTargetCapacity": target},
                    )
            except BadInput as error:
                raise Refused(str(error)) from error
        return target - group.desired

    def terminate(self, name: str, instance: str, *, decrement: bool) -> None:
        """Terminate an instance of a fleet, which launches another unless its target is lowered first.

        A lower target alone ends nothing, since EC2 would choose the instance. It is lowered only while it
        covers all instances, so that a call which died in between lowers it once when it is repeated.

        Raises:
            NotFound: there is no such fleet, or it is not an instance of it any more.
            Refused: no right: the instance itself must have the tag of its owner.
        """
        fresh = next(iter(self._describe([name])), None)
        instances = frozenset(self._instances(name))
        if fresh is None or instance not in instances:
            raise NotFound(f"{instance} is not an instance of the EC2 fleet {name}")
        target = _desired(fresh)
        if decrement and target >= len(instances):
            with translated(f"lower the target capacity of {name} to {target - 1}"):
                self._account.aws.ec2.modify_fleet(
                    FleetId=name,
                    ExcessCapacityTerminationPolicy="no-termination",
                    TargetCapacitySpecification={"TotalTargetCapacity": target - 1},
                )
        with translated(f"terminate {instance} of {name}"):
            self._account.aws.ec2.terminate_instances(InstanceIds=[instance])

    def _describe(self, ids: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        with translated(f"describe the EC2 fleets of cluster {self._cluster}"):
            pages = self._account.aws.ec2.get_paginator("describe_fleets").paginate(
                FleetIds=list(ids)
            )
            return [fleet for page in pages for fleet in page["Fleets"]]

    def _read(self, fleet: Mapping[str, Any], nodes: Sequence[Node]) -> NodeGroup:
        name, tags = str(fleet["FleetId"]), _tags(fleet)
        instances = frozenset(self._instances(name))
        mine = [node for node in nodes if node.instance in instances]
        overrides = [o for c in fleet.get("LaunchTemplateConfigs", ()) for o in c["Overrides"]]
        types = tuple(dict.fromkeys(o["InstanceType"] for o in overrides if "InstanceType" in o))
        capacity = str(fleet["TargetCapacitySpecification"]["DefaultTargetCapacityType"])
        infos = [i for i in map(self._account.instance_type, types) if i is not None]
        labels = {CAPACITY_LABELS[0]: capacity}
        missing = _desired(fleet) > sum(node.ready for node in mine)
        launched, refusals = self._history(name) if missing else ({}, ())
        # A weighted fleet counts units, not nodes: what a unit is, nobody can say beforehand.
        weighted = any(o.get("WeightedCapacity", 1) != 1 for o in overrides)
        return NodeGroup(
            kind=NAME,
            name=name,
            capacity=capacity,
            zones=tuple(
                sorted(
                    {o["AvailabilityZone"] for o in overrides if o.get("AvailabilityZone")}
                    or {n.zone for n in mine if n.zone}
                )
            ),
            desired=_desired(fleet),
            min_size=0,
            max_size=_maximum(fleet),
            instances=instances,
            instance_types=types,
            subnets=tuple(
                dict.fromkeys(s for o in overrides for s in o.get("SubnetId", "").split(",") if s)
            ),
            template=None
            if weighted
            else templates.from_nodes(mine)
            or templates.from_tags(tags, templates.from_instance_types(infos, labels)),
            rebalances="CapacityRebalance"
            in fleet.get("SpotOptions", {}).get("MaintenanceStrategies", {}),
            launched=launched,
            refusals=refusals,
            may_grow=tags.get(GROW) == "true",
            renew=tags.get(RENEW) == "true",
        )

    def _instances(self, name: str) -> Iterator[str]:
        page: dict[str, str] = {}
        while True:
            with translated(f"describe the instances of {name}"):
                answer = self._account.aws.ec2.describe_fleet_instances(FleetId=name, **page)  # type: ignore[arg-type] # typed by name
            yield from (found["InstanceId"] for found in answer["ActiveInstances"])
            if not answer.get("NextToken"):
                return
            page = {"NextToken": answer["NextToken"]}

    def _history(self, name: str) -> tuple[Mapping[str, datetime], tuple[Refusal, ...]]:
        """Return what a fleet launched and was refused lately; what cannot be read tells nothing."""
        since = self._account.now() - _TOLD
        try:
            with translated(f"describe the history of {name}"):
                answer = self._account.aws.ec2.describe_fleet_history(FleetId=name, StartTime=since)
        except PlimsollError as error:
            self._warn(str(error))
            return {}, ()
        launched, refusals = dict[str, datetime](), list[Refusal]()
        for record in answer["HistoryRecords"]:
            about = record["EventInformation"]
            code = about.get("EventSubType", "")
            if code == "launched" and about.get("InstanceId"):
                launched[about["InstanceId"]] = record["Timestamp"]
            elif record["EventType"] == "service-error" or code == "launchSpecUnusable":
                words = about.get("EventDescription", "")
                refusals.append(refusal_of(code, words, record["Timestamp"]))
        return launched, tuple(sorted(refusals, key=lambda r: r.at, reverse=True))


def _tags(fleet: Mapping[str, Any]) -> Mapping[str, str]:
    return {tag["Key"]: tag.get("Value", "") for tag in fleet.get("Tags", ())}


def _desired(fleet: Mapping[str, Any]) -> int:
    return int(fleet["TargetCapacitySpecification"]["TotalTargetCapacity"])


def _maximum(fleet: Mapping[str, Any]) -> int:
    """Return what the owner allows; nothing beyond what it has where that cannot be read."""
    said = _tags(fleet).get(MAXIMUM, "")
    return int(said) if said.isdecimal() and len(said) < 6 else _desired(fleet)  # noqa: PLR2004 - digits
