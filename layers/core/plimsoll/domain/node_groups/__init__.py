"""Node groups and their instances, and why a group launched none."""

from __future__ import annotations

from plimsoll.domain.node_groups.instances import Instance
from plimsoll.domain.node_groups.launch_failures import (
    LONGEST_WHY,
    GroupMaximum,
    InsufficientCapacity,
    LaunchesThrottled,
    LaunchTemplateBroken,
    NoFreeAddresses,
    NotGrown,
    OtherRefusal,
    Refusal,
    VcpuQuota,
    advice,
)
from plimsoll.domain.node_groups.node_groups import Asked, NodeGroup, NodeTemplate
from plimsoll.domain.node_groups.upcoming_nodes import (
    ARRIVAL,
    BEGUN,
    DOUBTED,
    RETRY,
    Expectation,
    expect,
    on_the_way,
    start_up,
)

__all__ = [
    "ARRIVAL",
    "BEGUN",
    "DOUBTED",
    "LONGEST_WHY",
    "RETRY",
    "Asked",
    "Expectation",
    "GroupMaximum",
    "Instance",
    "InsufficientCapacity",
    "LaunchTemplateBroken",
    "LaunchesThrottled",
    "NoFreeAddresses",
    "NodeGroup",
    "NodeTemplate",
    "NotGrown",
    "OtherRefusal",
    "Refusal",
    "VcpuQuota",
    "advice",
    "expect",
    "on_the_way",
    "start_up",
]
