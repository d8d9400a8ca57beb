"""GPUs: which are idle, which slice a workload needs, and how a fleet is best split."""

from __future__ import annotations

from plimsoll_service.domain.gpu.cards import CARDS, Card, Profile
from plimsoll_service.domain.gpu.class_days import ClassDaySum, merged
from plimsoll_service.domain.gpu.minutes import GpuMinute, gpu_minute_of
from plimsoll_service.wire.gpu import model_of

__all__ = [
    "CARDS",
    "Card",
    "ClassDaySum",
    "GpuMinute",
    "Profile",
    "gpu_minute_of",
    "merged",
    "model_of",
]
