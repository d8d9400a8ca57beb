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
    refusal_advice,
)
from plimsoll.domain.node_groups.node_groups import (
    Asked,
    NodeGroup,
    NodeTemplate,
    is_our_hook,
)
from plimsoll.domain.node_groups.upcoming_nodes import (
    DOUBTED_AFTER_REFUSAL,
    FIRST_SIGN_WITHIN,
    NODES_JOIN_WITHIN,
    Expectation,
    expected_nodes,
    not_asked_again,
    on_the_way,
    start_up,
)

__all__ = [
    "DOUBTED_AFTER_REFUSAL",
    "FIRST_SIGN_WITHIN",
    "LONGEST_WHY",
    "NODES_JOIN_WITHIN",
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
    "expected_nodes",
    "is_our_hook",
    "not_asked_again",
    "on_the_way",
    "refusal_advice",
    "start_up",
]
