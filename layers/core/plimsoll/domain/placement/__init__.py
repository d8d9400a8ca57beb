"""Floors and spread groups: where workloads should stand, and the node labels that say so."""

from __future__ import annotations

from plimsoll.domain.placement.plan import PlacementPlan, between_runs, plan_placement
from plimsoll.domain.placement.status import Standing

__all__ = ["PlacementPlan", "Standing", "between_runs", "plan_placement"]
