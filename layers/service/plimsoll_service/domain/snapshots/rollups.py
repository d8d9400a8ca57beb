"""What a cluster held and used, by the minute, the hour and the day.

A minute is its last snapshot. An hour is made of its minutes and a day of its hours, always anew and
never by adding, so that a message that comes twice is counted once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from plimsoll.domain.kubernetes import capacity_of
from plimsoll_service.domain.gpu import GpuMinute, gpu_minute_of
from plimsoll_service.domain.snapshots.billed import Billed, billed_of, combined_billed
from plimsoll_service.domain.snapshots.usage import (
    MOST_OF_HOUR,
    Packed,
    UsageSum,
    WorkloadUsage,
    usage_by_workload,
)
from plimsoll_service.wire.snapshot import Amounts, Snapshot, Usage


class Span(StrEnum):
    """How long a rollup is."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"

    def start(self, at: datetime) -> datetime:
        """Return when the span begins that holds a time."""
        at = at.astimezone(UTC).replace(second=0, microsecond=0)
        match self:
            case Span.MINUTE:
                return at
            case Span.HOUR:
                return at.replace(minute=0)
            case Span.DAY:
                return at.replace(minute=0, hour=0)

    @property
    def length(self) -> timedelta:
        """How long it is."""
        return {Span.MINUTE: timedelta(minutes=1), Span.HOUR: timedelta(hours=1)}.get(
            self, timedelta(days=1)
        )

    @property
    def kept(self) -> timedelta:
        """How long rollups of this span are kept."""
        match self:
            case Span.MINUTE:
                return timedelta(days=2)
            case Span.HOUR:
                return timedelta(days=35)
            case Span.DAY:
                return timedelta(days=400)

    def key(self, at: datetime) -> str:
        """Return the key of the rollup that holds a time; keys stand in the order of time."""
        return f"{self}#{self.start(at):%Y-%m-%dT%H:%M}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Processors and memory, summed over the samples of a rollup."""

    cpu_m: int = 0
    memory: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(cpu_m=self.cpu_m + other.cpu_m, memory=self.memory + other.memory)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """A cluster over some time. Counts and amounts are sums over `samples`: divide to get a mean."""

    start: datetime
    last: datetime
    """When the last of its snapshots was taken."""
    samples: int
    nodes: int
    spot_nodes: int
    pods: int
    pending: int
    allocatable: Amount
    requested: Amount
    used: Amount
    """By pods, as far as the cluster measures it."""
    billed: Billed | None = None
    """None: an older version wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollup(Totals):
    """The totals, and what each workload used."""

    usage: Mapping[str, Packed | WorkloadUsage] = field(default_factory=dict)
    """By the uid of the workload; unpacked where an older version wrote it."""
    left_out: int = 0
    """Workloads whose usage is not kept, because there are too many: those that ask for least."""
    gpus: GpuMinute | None = None
    """Of a minute alone: longer spans have documents of their own for each class of workload."""


def rollup_of(snapshot: Snapshot) -> Rollup:
    """Return the minute of a full snapshot."""
    used = {each.uid: each for each in snapshot.usage}
    usage = usage_by_workload(snapshot)
    measured = [used[pod.uid] for pod in snapshot.pods if pod.uid in used]
    return Rollup(
        start=Span.MINUTE.start(snapshot.taken_at),
        last=snapshot.taken_at,
        samples=1,
        nodes=len(snapshot.nodes),
        spot_nodes=sum(capacity_of(node.labels) == "spot" for node in snapshot.nodes),
        pods=len(snapshot.pods),
        pending=sum(not pod.node for pod in snapshot.pods),
        allocatable=_sum(node.allocatable for node in snapshot.nodes),
        requested=_sum(pod.requests for pod in snapshot.pods),
        used=_sum(measured),
        billed=billed_of(snapshot),
        usage=usage.usage,
        left_out=usage.left_out,
        gpus=gpu_minute_of(snapshot),
    )


def combined_rollup(parts: Iterable[Rollup], span: Span) -> Rollup | None:
    """Return the rollup of a longer span; None: it has no parts. Of the parts it holds one at a time."""
    usage, found = UsageSum(MOST_OF_HOUR), []
    for part in parts:
        usage.add(part.usage, left_out=part.left_out)
        found.append(replace(part, usage={}, gpus=None))
    if not found:
        return None
    return Rollup(
        start=span.start(min(part.start for part in found)),
        last=max(part.last for part in found),
        samples=sum(part.samples for part in found),
        nodes=sum(part.nodes for part in found),
        spot_nodes=sum(part.spot_nodes for part in found),
        pods=sum(part.pods for part in found),
        pending=sum(part.pending for part in found),
        allocatable=sum((part.allocatable for part in found), Amount()),
        requested=sum((part.requested for part in found), Amount()),
        used=sum((part.used for part in found), Amount()),
        billed=combined_billed(part.billed for part in found),
        usage=usage.usage,
        left_out=usage.left_out,
    )


def due_rollups(taken: datetime, newest: datetime | None) -> Iterator[tuple[Span, datetime]]:
    """Yield the hours and days to be made anew once a minute is written, hours first.

    Args:
        taken: When the snapshot of that minute was taken.
        newest: When the newest one before it was taken; None: there was none.
    """
    if newest is None:
        return
    # A late snapshot changes an hour that exists, a newer one
    # completes the hour before it: both times the earlier hour is due.
    earlier, later = sorted((taken, newest))
    for span in (Span.HOUR, Span.DAY):
        if span.start(earlier) < span.start(later):
            yield span, span.start(earlier)


def _sum(amounts: Iterable[Amounts | Usage]) -> Amount:
    found = list(amounts)
    return Amount(cpu_m=sum(a.cpu_m for a in found), memory=sum(a.memory for a in found))
