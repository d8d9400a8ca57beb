"""Capacity pools: what EC2 runs out of, and what it reclaims together.

A node group asks one or several of them, and no refusal or interruption of one pool says anything
about a whole group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple, assert_never, override

from plimsoll.domain.interruptions import SCALE_DOWN
from plimsoll.domain.kubernetes import INSTANCE_TYPE, Node
from plimsoll.domain.node_groups import (
    GroupMaximum,
    InsufficientCapacity,
    LaunchesThrottled,
    LaunchTemplateBroken,
    NodeGroup,
    NoFreeAddresses,
    OtherRefusal,
    Refusal,
    VcpuQuota,
)
from plimsoll.domain.notices import HealthScheduledChange, LifecycleTerminate

type Source = tuple[str, str]
"""The key of a node group, and a zone of it."""

SPOT: Final = "spot"
UNKNOWN: Final = "?"
_QUOTAS: Final = ("dl", "trn", "inf", "vt", "hpc", "mac", "u", "f", "g", "p", "x")
"""Beginnings of instance types with a vCPU quota of their own; all others share that of the standard families.
`g` and `vt` have one in common. https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html"""
_OF_ONE_INSTANCE: Final = {SCALE_DOWN, HealthScheduledChange.kind, LifecycleTerminate.kind}
"""These say nothing about other instances of a capacity pool."""


class CapacityPool(NamedTuple):
    """Instances of one type in one zone, bought in one way."""

    instance_type: str
    zone: str
    capacity: str
    """`on-demand` or `spot`."""

    @override
    def __str__(self) -> str:
        return f"{self.capacity} {self.instance_type} in {self.zone}"


def pools_of(group: NodeGroup, zone: str) -> Sequence[CapacityPool]:
    """Return the pools that a group may launch from in a zone, as far as its types are known."""
    return [CapacityPool(each, zone, group.capacity) for each in group.instance_types]


def refused_sources(
    groups: Sequence[NodeGroup],
    refusals: Mapping[str, Iterable[Refusal]],
    since: datetime,
    avoided: Collection[CapacityPool] = (),
) -> frozenset[Source]:
    """Return the groups and zones that would be refused too, as far as these refusals tell.

    Args:
        groups: all groups of the cluster.
        refusals: key of a group -> what it was refused with.
        since: what was told at this time or before is forgotten.
        avoided: pools from which nothing is to be expected, for whatever reason.
    """
    pools, quotas, sources = set(avoided), set[tuple[str, str]](), set[Source]()
    for group in groups:
        for refusal in refusals.get(group.key, ()):
            if refusal.at <= since:
                continue
            zones = (refusal.zone,) if refusal.zone else group.zones
            named = (refusal.instance_type,) if refusal.instance_type else group.instance_types
            match refusal:
                case InsufficientCapacity() if named:
                    pools |= {CapacityPool(t, z, group.capacity) for t in named for z in zones}
                case VcpuQuota() if named:
                    quotas |= {(_quota_of(t), group.capacity) for t in named}
                case InsufficientCapacity() | NoFreeAddresses() | OtherRefusal():
                    sources |= {(group.key, zone) for zone in zones}
                case VcpuQuota() | GroupMaximum() | LaunchTemplateBroken():
                    sources |= {(group.key, zone) for zone in group.zones}
                case LaunchesThrottled():  # the same would be told of every other group
                    continue
                case _:
                    assert_never(refusal)
    return frozenset(sources) | {
        (group.key, zone)
        for group in groups
        for zone in group.zones
        if (asked := pools_of(group, zone))
        and all(p in pools or (_quota_of(p.instance_type), p.capacity) in quotas for p in asked)
    }


def spot_pool_of(node: Node) -> CapacityPool | None:
    """Return the spot pool that a node stands in; None of any other node. What its labels leave open is `UNKNOWN`."""
    if node.capacity != SPOT:
        return None
    return CapacityPool(node.labels.get(INSTANCE_TYPE, UNKNOWN), node.zone or UNKNOWN, SPOT)


def interrupted_pools(
    nodes: Iterable[Node], groups: Sequence[NodeGroup]
) -> frozenset[CapacityPool]:
    """Return the spot pools that are reclaimed just now, by the interruptions that stand on nodes.

    Their other instances are likely to follow: of two spot interruptions of one type and zone more than nine
    in ten come within three minutes of each other. https://arxiv.org/abs/2604.16457
    """
    group_of = {instance: group for group in groups for instance in group.instances}
    found = set[CapacityPool]()
    for node in nodes:
        group = group_of.get(node.instance or "")
        told = node.interruption
        if told is None or told.withdrawn or told.kind in _OF_ONE_INSTANCE or node.zone is None:
            continue
        if (group.capacity if group else node.capacity) == SPOT:
            only = group.instance_types[0] if group and len(group.instance_types) == 1 else None
            if named := only or node.labels.get(INSTANCE_TYPE):
                found.add(CapacityPool(named, node.zone, SPOT))
    return frozenset(found)


def is_covered(sources: Collection[Source], group: NodeGroup, zone: str) -> bool:
    """Whether a group is among these sources; one that cannot be steered only as a whole."""
    zones = (zone,) if group.launchable else group.zones
    return all((group.key, each) in sources for each in zones)


def _quota_of(instance_type: str) -> str:
    """Return by which vCPU quota EC2 counts an instance type."""
    family = instance_type.partition(".")[0]
    found = next((q for q in _QUOTAS if family.startswith(q)), "standard")
    return "g" if found == "vt" else found
