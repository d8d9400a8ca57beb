"""GPUs: which are idle, which slice a workload needs, and how a fleet is best split."""

from __future__ import annotations

from plimsoll_service.domain.gpu.audit import Audit, Owner, OwnerUse, audit_gpus
from plimsoll_service.domain.gpu.cards import CARDS
from plimsoll_service.domain.gpu.class_days import ClassDaySum, merged, with_pods
from plimsoll_service.domain.gpu.fit import (
    ClassFit,
    Fit,
    Mechanism,
    Question,
    fit_classes,
    profiles_needed,
)
from plimsoll_service.domain.gpu.fleet import FleetPlan, GpuNode, NodePlan, plan_fleet
from plimsoll_service.domain.gpu.geometry import WHOLE_GPU, Counts, MigGeometries, geometries_of
from plimsoll_service.domain.gpu.layouts import (
    Layout,
    geometry_name,
    layout_name,
    layout_of,
    mig_config,
    pair_layouts,
    supply,
)
from plimsoll_service.domain.gpu.minutes import GpuMinute, gpu_minute_of, pods_of_each
from plimsoll_service.domain.gpu.mixed import Choice, cheapest_cards
from plimsoll_service.domain.gpu.schedules import Schedule
from plimsoll_service.domain.gpu.sizing import DoNotSplit, Size, Slice, TimeSlices
from plimsoll_service.wire.gpu import model_of

__all__ = [
    "CARDS",
    "WHOLE_GPU",
    "Audit",
    "Choice",
    "ClassDaySum",
    "ClassFit",
    "Counts",
    "DoNotSplit",
    "Fit",
    "FleetPlan",
    "GpuMinute",
    "GpuNode",
    "Layout",
    "Mechanism",
    "MigGeometries",
    "NodePlan",
    "Owner",
    "OwnerUse",
    "Question",
    "Schedule",
    "Size",
    "Slice",
    "TimeSlices",
    "audit_gpus",
    "cheapest_cards",
    "fit_classes",
    "geometries_of",
    "geometry_name",
    "gpu_minute_of",
    "layout_name",
    "layout_of",
    "merged",
    "mig_config",
    "model_of",
    "pair_layouts",
    "plan_fleet",
    "pods_of_each",
    "profiles_needed",
    "supply",
    "with_pods",
]
