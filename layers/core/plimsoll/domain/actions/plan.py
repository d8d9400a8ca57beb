"""What should be done now, as data with reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import override

from plimsoll.domain.actions.actions import AboutPod, Action, Evict, ForceDelete, Wave
from plimsoll.domain.reports import Reason, Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An action, and the nodes whose interruption it serves."""

    action: Action
    nodes: frozenset[str]
    workload: str = ""
    """Of the pod that the action is about; empty where it is about none, or nobody told."""

    def reason(self, now: datetime) -> Reason:
        """Return what a report says of the step."""
        action = self.action
        pods: tuple[str, ...] = ()
        if isinstance(action, AboutPod) and self.workload:
            pods = (str(action.pod),)
        last_resort = isinstance(action, Evict) and action.wave is Wave.DEADLINE
        return Reason(
            verb=action.verb,
            about=self.workload if pods else action.target,
            pods=pods,
            why=action.reason,
            first=now,
            last=now,
            urgent=last_resort or isinstance(action, ForceDelete),
        )

    @override
    def __str__(self) -> str:
        return f"{self.action.verb} {self.action.target}: {self.action.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """Pods of a workload that reach their eviction deadline later."""

    at: datetime
    workload: str
    pods: tuple[str, ...]

    @override
    def __str__(self) -> str:
        which = f"Pod {self.pods[0]}" if len(self.pods) == 1 else f"{len(self.pods)} pods"
        return f"evict {which} of {self.workload}, unless replaced before: the eviction deadline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Steps in the order of their waves; what is waited for; what to write down.

    An empty plan that is not `busy` means that nothing is left to do until something new happens.
    """

    steps: tuple[Step, ...] = ()
    waiting: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Node -> what its drain waits for, in words."""
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Node -> what owners of workloads on it should know, in words."""
    reports: tuple[Report, ...] = ()
    """What is known now of each open interruption."""
    busy: bool = False
    """Something is under way that another observation within seconds carries on. What waits without a
    near deadline is not: the resync asks once a minute whether it waits still."""
    due: tuple[Due, ...] = ()
    """Which pods reach their eviction deadline later, the next ones first."""
    next_eviction: datetime | None = None
    """When the next pod has to be asked to stop, whatever happens until then."""

    hurried: bool = False
    """More pods are to be told to stop now than an API server takes within a moment, or more are to leave before a deadline
    than one plan tells: another reconcile would list the cluster anew and tell nobody meanwhile."""
    expires: datetime | None = None
    """When more pods reach their eviction deadline than an API server evicts within a moment: what was not begun by then is decided
    anew. None where they have it now."""

    @property
    def actions(self) -> tuple[Action, ...]:
        """The actions alone."""
        return tuple(step.action for step in self.steps)
