"""GPUs: which are idle, which slice a workload needs, and how a fleet is best split."""

from __future__ import annotations

from plimsoll_service.domain.gpu.cards import CARDS, Card, Profile, model_of
from plimsoll_service.domain.gpu.fleet import FleetPlan, GpuNode, NodePlan, plan_fleet
from plimsoll_service.domain.gpu.geometry import WHOLE, Counts, Splits, splits_of
from plimsoll_service.domain.gpu.layouts import (
    Layout,
    geometry_name,
    layout_name,
    layout_of,
    mig_config,
    pair_layouts,
    supply,
)
from plimsoll_service.domain.gpu.mixed import Choice, cheapest_cards

__all__ = [
    "CARDS",
    "WHOLE",
    "Card",
    "Choice",
    "Counts",
    "FleetPlan",
    "GpuNode",
    "Layout",
    "NodePlan",
    "Profile",
    "Splits",
    "cheapest_cards",
    "geometry_name",
    "layout_name",
    "layout_of",
    "mig_config",
    "model_of",
    "pair_layouts",
    "plan_fleet",
    "splits_of",
    "supply",
]
