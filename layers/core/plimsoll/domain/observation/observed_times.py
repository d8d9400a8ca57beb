"""How long the pods of a workload took to stop and to start, as far as that was seen, and how many it had.

Each pod counts once, by its UID, however often and however late it is told of. A pod that was killed says only
that it would have needed longer: that may lengthen what is reckoned with, and never shortens it, so that a grace period
which Plimsoll cut short teaches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import ceil
from typing import Final
from zlib import crc32

from plimsoll.domain.kubernetes import OwnerKind, Pod, Ref

LONGEST_START: Final = timedelta(minutes=15)
"""A pod that was Ready later than this after it got its node lost and regained readiness: it does not tell how long it took to start."""
TIMES_KEPT: Final = timedelta(days=90)
COUNT_KEPT: Final = timedelta(minutes=15)
"""How long the pods of a controller that we do not know count after they were last seen. A quota or a webhook may keep
a pod from being made anew for long; an owner who scaled down waits no longer than this for what is left."""
MOST_SAMPLES: Final = 20
"""How many pods of a workload are remembered, of each kind of time."""
MOST_WORKLOADS: Final = 200
"""How many workloads a run may write: tenants can create any number."""
LONGEST_KEY_BYTES: Final = 900
"""Bytes of a workload's reference: DynamoDB takes 1,024 in a sort key."""

_P95: Final = 95
_NAMED_ANEW: Final = {OwnerKind.JOB, OwnerKind.DAEMON_SET, OwnerKind.NODE, "Pod"}
"""Kinds of which nothing is remembered: the next Job or bare pod has another name, and the others are never moved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTime:
    """What the last pods of a workload took, in seconds."""

    pods: int
    """How many distinct pods told, by UID; 0 where nobody knows more than a lower bound."""
    p95_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadTimes:
    """What was seen of one workload; None where nothing was."""

    stop: ObservedTime | None = None
    """From the request to stop until the pod was gone."""
    start: ObservedTime | None = None
    """From the node until Ready."""
    checkpoint_seconds: int | None = None
    """Of the pods of a gang, the longest from the notice that they were told of until they ended by themselves."""
    pods: int | None = None
    """How many pods it lately had, if its controller is one that we do not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one pod told."""

    uid: str
    at: datetime
    """When it was gone, or Ready."""
    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Count:
    """How many pods of a workload there were, none of which was stopping."""

    at: datetime
    pods: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """What the pods of one workload told."""

    stop: tuple[Sample, ...] = ()
    """Pods that stopped by themselves: the last twenty."""
    killed: tuple[Sample, ...] = ()
    """Pods that were killed after so long: the twenty that had the longest."""
    start: tuple[Sample, ...] = ()
    """Pods that became Ready: the last twenty."""
    checkpoint: tuple[Sample, ...] = ()
    """Pods of a gang that ended by themselves after they were told a deadline: the last twenty."""
    count: Count | None = None
    """The last time that no pod was missing, as far as that was known."""

    def merged(self, other: Samples) -> Samples:
        """Return what both tell. In any order, and told twice, it is the same."""
        told = [
            sample
            for each in (self, other)
            for kind in (each.stop, each.killed, each.start, each.checkpoint)
            for sample in kind
        ]
        count = max((each.count for each in (self, other) if each.count), default=None)
        if not told:
            return replace(self, count=count)
        since = max(sample.at for sample in told) - TIMES_KEPT
        return Samples(
            stop=_most(_each_once([*self.stop, *other.stop], max), since, _newest),
            killed=_most(_each_once([*self.killed, *other.killed], max), since, _longest),
            # The first time that it was Ready: one that flapped within the quarter of an hour was so later once more.
            start=_most(_each_once([*self.start, *other.start], min), since, _newest),
            checkpoint=_most(
                _each_once([*self.checkpoint, *other.checkpoint], max), since, _newest
            ),
            count=count,
        )

    def times(self, now: datetime) -> WorkloadTimes:
        """Return what is reckoned with, out of what was told in the last ninety days."""
        stop, killed, start, checkpoint = (
            sorted(sample.seconds for sample in told if now - sample.at < TIMES_KEPT)
            for told in (self.stop, self.killed, self.start, self.checkpoint)
        )
        return WorkloadTimes(
            stop=_stop(stop, killed),
            start=ObservedTime(pods=len(start), p95_seconds=_p95(start)) if start else None,
            checkpoint_seconds=max(checkpoint, default=None),
            pods=self.count.pods if self.count and now - self.count.at < COUNT_KEPT else None,
        )


def times_are_kept(workload: Ref) -> bool:
    """Whether times of a workload are remembered."""
    return workload.kind not in _NAMED_ANEW and len(str(workload).encode()) <= LONGEST_KEY_BYTES


def start_samples(of_workload: Mapping[Ref, Sequence[Pod]]) -> Mapping[Ref, Samples]:
    """Return how long the newest running pods took to start, by workload."""
    found: dict[Ref, Samples] = {}
    for workload, pods in of_workload.items():
        told = [
            Sample(uid=pod.uid, at=pod.ready_since, seconds=pod.start_seconds)
            for pod in pods
            if pod.serving and pod.start_seconds is not None and pod.ready_since is not None
        ]
        # Merged with an empty value, which limits the number of samples.
        if told and times_are_kept(workload):
            found[workload] = Samples().merged(Samples(start=tuple(told)))
    return found


def chosen_workloads(
    told: Iterable[Ref], now: datetime, most: int = MOST_WORKLOADS
) -> Sequence[Ref]:
    """Return the workloads that are written now, each namespace in turn, in an order that the time decides."""
    taken: dict[str, int] = {}
    turns: list[tuple[int, Ref]] = []
    # The order changes from run to run: workloads that find no room now find it later. A
    # tenant with thousands of workloads keeps out only workloads of its own namespace.
    for workload in sorted(told, key=lambda ref: crc32(f"{now}{ref}".encode())):
        turn = taken[workload.namespace] = taken.get(workload.namespace, 0) + 1
        turns.append((turn, workload))
    return [workload for _, workload in sorted(turns, key=lambda each: each[0])[:most]]


def _stop(stop: Sequence[int], killed: Sequence[int]) -> ObservedTime | None:
    """Return the stop time that is reckoned with.

    Where more than one in twenty was killed later than the p95, nobody knows the p95: the longest of these
    lengthens the assumption. So one more kill never makes it shorter.
    """
    p95 = _p95(stop) if stop else 0
    over = [seconds for seconds in killed if seconds > p95]
    if len(over) * 100 > (100 - _P95) * (len(stop) + len(over)):
        return ObservedTime(pods=0, p95_seconds=over[-1])
    return ObservedTime(pods=len(stop), p95_seconds=p95) if stop else None


def _p95(ordered: Sequence[int]) -> int:
    """Return the 95th percentile by nearest rank."""
    return ordered[ceil(_P95 * len(ordered) / 100) - 1]


def _each_once(told: Sequence[Sample], best: Callable[[int, int], int]) -> Iterable[Sample]:
    found: dict[str, Sample] = {}
    for sample in sorted(told, key=_newest):
        known = found.get(sample.uid)
        if known is None or best(known.seconds, sample.seconds) != known.seconds:
            found[sample.uid] = sample
    return found.values()


def _most(
    told: Iterable[Sample], since: datetime, key: Callable[[Sample], tuple[object, ...]]
) -> tuple[Sample, ...]:
    return tuple(sorted((each for each in told if each.at > since), key=key)[-MOST_SAMPLES:])


def _newest(sample: Sample) -> tuple[datetime, str]:
    return sample.at, sample.uid


def _longest(sample: Sample) -> tuple[int, datetime, str]:
    return sample.seconds, sample.at, sample.uid
