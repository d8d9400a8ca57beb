"""What the console knows of the batch queues of a cluster: quota, use, and why each gang waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaLine:
    """One resource of a queue in one flavor, in the units of the planner, and in words."""

    flavor: str
    resource: str
    used: int
    quota: int
    most: int
    """What the queue could use if nobody else used anything."""
    words: str
    """Such as `6 of 8, 2 borrowed`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLine:
    """One queue."""

    name: str
    cohort: str | None
    stopped: bool
    quotas: Sequence[QuotaLine]
    share: float | None
    running: int
    waiting: Sequence[tuple[str, int]]
    """What gangs wait for, and how many."""
    preempted: int
    """Of these, gangs that were stopped for others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GangLine:
    """One gang."""

    name: str
    """Namespace and name."""
    queue: str
    state: str
    running: int
    """Pods."""
    pods: int
    since: datetime
    reason: str = ""
    """Why it waits, in a line."""
    why: Sequence[str] = ()
    """What holds it, what has to end first, and when."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuesSeen:
    """The queues of a cluster at one moment."""

    at: datetime
    queues: Sequence[QueueLine] = ()
    """By name."""
    gangs: Sequence[GangLine] = ()
    """Those that wait first, and of these the oldest."""
    waiting: int = 0
    """Gangs that wait, with those that are not listed."""
    more: int = 0
    """Gangs that are not listed."""
    error: str = ""
    """Why they could not be read."""
