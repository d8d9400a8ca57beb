"""What a strategy to replace pods answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from plimsoll.domain.actions import Action
from plimsoll.domain.disruptions import Allowance, WorkloadDisruption
from plimsoll.domain.kubernetes import Pod
from plimsoll.domain.scheduling import Headroom

TIME_TO_STOP: Final = "it may need all the time that is left"
SHORT_OF_TIME: Final = "its pods would not all be replaced in turn before their deadline"
CONTENDED: Final = "waits until others, who may take its headroom first, have their places"


def is_rolling(disruption: WorkloadDisruption) -> bool:
    """Whether the rollout of a workload takes as many pods as may be missing, at any moment."""
    workload = disruption.workload
    return workload is not None and workload.rolling_out and not workload.paused


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What to do now, and what is waited for, in words."""

    actions: tuple[Action, ...] = ()
    waiting: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """How pods are replaced."""

    name: str
    surges: bool
    """Replacements stand beside the old pods. Strategies that cannot do that choose their headroom first."""
    why: Callable[[WorkloadDisruption], str | None]
    """Return why a disruption is treated this way, or None when it is not."""
    steps: Callable[[WorkloadDisruption, Headroom, Allowance], Steps]
    """Return what to do, and take from the headroom and from what budgets let go."""
    leaving_anyway: Callable[[WorkloadDisruption, Allowance], Iterable[Pod]] = lambda *_: ()
    """Return the pods that leave in this plan although their replacements neither exist nor have a place."""
