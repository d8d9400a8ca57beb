"""How many nodes of which groups are requested, and what would be missing in a storm."""

from __future__ import annotations

from plimsoll.domain.capacity.advised_nodes import kept_out
from plimsoll.domain.capacity.growth_plan import Growth, plan_growth
from plimsoll.domain.capacity.node_templates import Daemons, could_serve, future_node
from plimsoll.domain.capacity.offline_estimate import estimated_node, estimated_observation
from plimsoll.domain.capacity.preflight import (
    QUOTA_CODE,
    Short,
    Shortfall,
    VcpuQuota,
    images_of,
    preflight_announcement,
    preflight_answer,
    preflight_report,
    preflights_of,
    short_of_addresses,
    short_of_maxima,
    short_of_quota,
    short_of_taints,
    short_of_templates,
    short_of_time_to_start,
    spot_loss,
    subnets_of,
    vcpus,
)
from plimsoll.domain.capacity.scale_up import ScaleUp, grow_token, plan_scale_up
from plimsoll.domain.capacity.start_up import (
    ASSUMED_NODE_SECONDS,
    StartWindow,
    StartWindows,
    node_starts,
    slow_starts,
)

__all__ = [
    "ASSUMED_NODE_SECONDS",
    "QUOTA_CODE",
    "Daemons",
    "Growth",
    "ScaleUp",
    "Short",
    "Shortfall",
    "StartWindow",
    "StartWindows",
    "VcpuQuota",
    "could_serve",
    "estimated_node",
    "estimated_observation",
    "future_node",
    "grow_token",
    "images_of",
    "kept_out",
    "node_starts",
    "plan_growth",
    "plan_scale_up",
    "preflight_announcement",
    "preflight_answer",
    "preflight_report",
    "preflights_of",
    "short_of_addresses",
    "short_of_maxima",
    "short_of_quota",
    "short_of_taints",
    "short_of_templates",
    "short_of_time_to_start",
    "slow_starts",
    "spot_loss",
    "subnets_of",
    "vcpus",
]
