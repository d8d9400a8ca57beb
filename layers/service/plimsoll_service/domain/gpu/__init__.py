"""GPUs: which are idle, which slice a workload needs, and how a fleet is best split."""

from __future__ import annotations

from plimsoll_service.domain.gpu.audit import Audit, Owner, OwnerUse, audit_gpus
from plimsoll_service.domain.gpu.bounds import upper_bound
from plimsoll_service.domain.gpu.cards import CARDS, Card
from plimsoll_service.domain.gpu.class_days import ClassDaySum, merged
from plimsoll_service.domain.gpu.fit import (
    ClassFit,
    Fit,
    Mechanism,
    Question,
    fit_classes,
    profiles_needed,
)
from plimsoll_service.domain.gpu.minutes import GpuMinute, gpu_minute_of
from plimsoll_service.domain.gpu.schedules import Schedule
from plimsoll_service.domain.gpu.sizing import DoNotSplit, Size, Slice, TimeSlices
from plimsoll_service.domain.gpu.time_slicing import slowdown

__all__ = [
    "CARDS",
    "Audit",
    "Card",
    "ClassDaySum",
    "ClassFit",
    "DoNotSplit",
    "Fit",
    "GpuMinute",
    "Mechanism",
    "Owner",
    "OwnerUse",
    "Question",
    "Schedule",
    "Size",
    "Slice",
    "TimeSlices",
    "audit_gpus",
    "fit_classes",
    "gpu_minute_of",
    "merged",
    "profiles_needed",
    "slowdown",
    "upper_bound",
]
