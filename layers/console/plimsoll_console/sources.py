"""Where the console reads: a drill, a live cluster, or a stack. Views ask nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Protocol

from plimsoll_console.loads import Load
from plimsoll_console.placements import Placement, Table
from plimsoll_console.queues import QueuesSeen

if TYPE_CHECKING:  # the first page does not wait for what it never needs
    from plimsoll.domain.frames import Frame
    from plimsoll.domain.observation import Observation
    from plimsoll.domain.reports import Report

type Kind = Literal["drill", "cluster", "stack"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """One cluster as a source knows it: never changed, only replaced."""

    name: str
    at: datetime
    """When it was read last."""
    seen: Observation | None = None
    """None until it was read once, and of a stack, which reads no cluster for the console."""
    told: bool = False
    """Whether a stack told of it."""
    loads: Sequence[Load] = ()
    """Its workloads, those first of which the least stays: as they stood before a storm that runs."""
    loads_at: datetime | None = None
    """When these were read."""
    queues: QueuesSeen | None = None
    """None: it has no batch queues, or they were not read yet."""
    placement: Placement | None = None
    """What a plan tells of it, where one was made."""
    frames: Sequence[Frame] = ()
    """Of its storms, the oldest first."""
    reports: Sequence[Report] = ()
    """The newest first."""
    error: str = ""
    """Why it could not be read the last time."""
    stale_after: float = 30.0
    """Seconds after which what is known of it is old."""

    @property
    def known(self) -> bool:
        """Whether anything is known of it yet."""
        return self.told or self.seen is not None

    @property
    def latest(self) -> Frame | None:
        """The last frame."""
        return self.frames[-1] if self.frames else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one workload would feel."""

    workload: str
    replicas: int
    floor: int
    """How many are to be Ready during a disruption."""
    lowest: int
    unharmed: bool
    below_floor: float = 0.0
    """Seconds."""
    at_zero: float = 0.0
    """Seconds."""
    killed: int = 0
    """Pods that are killed with their instance."""
    cut_short: int = 0
    """Pods that have less time to stop than they need."""
    stop: str = ""
    """How long its pods need to stop, and how that is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """What would happen if some spot instances were reclaimed now: while it is played, and afterwards."""

    number: int
    cluster: str
    scope: str
    """`spot`, `zone:NAME`, `family:NAME`, or words."""
    at: datetime
    stage: Literal["reading", "playing", "done", "failed"] = "reading"
    progress: float = 0.0
    """From 0 to 1: of the time that it plays at most."""
    error: str = ""
    verdict: str = ""
    outcomes: tuple[Outcome, ...] = ()
    """Those of all workloads, the worst first."""
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    """What was assumed."""
    nodes: frozenset[str] = frozenset()
    """Those that would go."""
    safe: tuple[tuple[float, int], ...] = ()
    """(seconds after the notice, safe pods)."""

    @property
    def words(self) -> str:
        """What would go, in words."""
        kind, _, name = self.scope.partition(":")
        if kind in {"zone", "family"} and name:
            return f"spot of the {kind} {name}"
        return "all spot" if self.scope == "spot" else self.scope


def with_end(frames: Sequence[Frame], reports: Sequence[Report], now: datetime) -> Sequence[Frame]:
    """Return frames of a stack whose last one is that of a storm that is over, where the reports say so.

    Its nodes go after the last plan of the drain: the resync closes their reports, and makes no frame. Pods that were
    killed then stand in the reports alone.
    """
    if not frames:
        return ()
    last = frames[-1]
    late = last.next_by is not None and last.next_by < now
    of_storm = [report for report in reports if last.storm <= report.noticed <= last.at]
    if not (late and of_storm and all(report.closed is not None for report in of_storm)):
        return frames
    killed = len({pod for report in of_storm for pod in report.killed})
    counts = replace(last.counts, killed=max(last.counts.killed, killed))
    return (*frames[:-1], replace(last, next_by=None, counts=counts))


class Source(Protocol):
    """What a view may ask. Every answer is at hand: no call waits."""

    @property
    def kind(self) -> Kind:
        """What is watched."""

    @property
    def title(self) -> str:
        """What is watched, in words."""

    @property
    def speed(self) -> float:
        """How many seconds pass in one of ours."""

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""

    def now(self) -> datetime:
        """Return the time of what is watched."""

    def clusters(self) -> Sequence[str]:
        """Return the names of its clusters."""

    def rehearsals(self, cluster: str) -> Sequence[Rehearsal]:
        """Return the rehearsals of a cluster, the newest first; nothing where it rehearses none."""

    def rehearse(self, cluster: str, scope: str) -> Rehearsal | None:
        """Begin a rehearsal, and return it; None: another one runs."""

    def state(self, cluster: str) -> ClusterState | None:
        """Return what is known of a cluster; None: there is none of that name."""
