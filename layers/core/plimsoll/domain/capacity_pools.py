"""Capacity pools: what EC2 runs out of, and what it reclaims together.

A node group asks one or several of them, and no refusal or interruption of one pool says anything
about a whole group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple, assert_never, override

from plimsoll.domain.groups import NodeGroup
from plimsoll.domain.refusals import (
    GroupMaximum,
    InsufficientCapacity,
    LaunchesThrottled,
    LaunchTemplateBroken,
    NoFreeAddresses,
    OtherRefusal,
    Refusal,
    VcpuQuota,
)

type Source = tuple[str, str | None]
"""A node group, and a zone of it, or None where the group chooses itself."""

_QUOTAS: Final = ("dl", "trn", "inf", "vt", "hpc", "mac", "u", "f", "g", "p", "x")
"""Beginnings of instance types with a vCPU quota of their own; all others share that of the standard families.
`g` and `vt` have one in common. https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html"""


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
) -> frozenset[Source]:
    """Return the groups and zones that would be refused too, as far as these refusals tell.

    Args:
        groups: all groups of the cluster.
        refusals: group -> what it was refused with.
        since: what was told at this time or before is forgotten.
    """
    pools, quotas, sources = set[CapacityPool](), set[tuple[str, str]](), set[Source]()
    for group in groups:
        for refusal in refusals.get(group.name, ()):
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
                    sources |= {(group.name, zone) for zone in zones}
                case VcpuQuota() | GroupMaximum() | LaunchTemplateBroken():
                    sources |= {(group.name, zone) for zone in group.zones}
                case LaunchesThrottled():  # the same would be told of every other group
                    continue
                case _:
                    assert_never(refusal)
    return frozenset(sources) | {
        (group.name, zone)
        for group in groups
        for zone in group.zones
        if (asked := pools_of(group, zone))
        and all(p in pools or (_quota_of(p.instance_type), p.capacity) in quotas for p in asked)
    }


def covered(sources: Collection[Source], group: NodeGroup, zone: str) -> bool:
    """Whether a group is among these sources; one that cannot be steered only as a whole."""
    zones = (zone,) if group.launchable else group.zones
    return (group.name, None) in sources or all((group.name, z) in sources for z in zones)


def _quota_of(instance_type: str) -> str:
    """Return by which vCPU quota EC2 counts an instance type."""
    family = instance_type.partition(".")[0]
    found = next((q for q in _QUOTAS if family.startswith(q)), "standard")
    return "g" if found == "vt" else found
