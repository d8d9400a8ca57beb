"""Node groups and their instances, and why a group launched none."""

from __future__ import annotations

from plimsoll.domain.node_groups.instance_devices import (
    GPU_COUNT,
    is_instance_device,
    may_have,
)
from plimsoll.domain.node_groups.instances import Instance, clusters_of
from plimsoll.domain.node_groups.launch_failures import (
    LONGEST_WHY_CHARACTERS,
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
    USUAL_START_UP,
    Expectation,
    expected_nodes,
    not_asked_again,
    on_the_way,
    start_up,
)

__all__ = [
    "DOUBTED_AFTER_REFUSAL",
    "FIRST_SIGN_WITHIN",
    "GPU_COUNT",
    "LONGEST_WHY_CHARACTERS",
    "NODES_JOIN_WITHIN",
    "USUAL_START_UP",
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
    "clusters_of",
    "expected_nodes",
    "is_instance_device",
    "is_our_hook",
    "may_have",
    "not_asked_again",
    "on_the_way",
    "refusal_advice",
    "start_up",
]
