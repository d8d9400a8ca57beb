"""In-memory twins of the stores: for the simulated rig and for tests.

They hold to the same contract suite as DynamoDB (`tests/contract/test_stores.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import override

from plimsoll.domain.capacity import VcpuQuota
from plimsoll.domain.errors import Conflict, NotFound
from plimsoll.domain.frames import Frame
from plimsoll.domain.kubernetes import Ref
from plimsoll.domain.observation import Samples
from plimsoll.domain.placement import ChosenLayout
from plimsoll.domain.registry import Cluster, IndexEntry, ResyncRequest
from plimsoll.domain.reports import Report, Score
from plimsoll.domain.spot import POOL_EVENTS_KEPT, CapacityPool, HeldPool, PoolEvent, PoolMemory
from plimsoll.domain.zones import LONGEST_SHIFT, ShiftEvent
from plimsoll.services.ports import FrameSink


class MemoryRegistry:
    """The registered clusters."""

    def __init__(self, clusters: Sequence[Cluster] = ()) -> None:
        self._clusters = {c.name: c for c in clusters}

    def get(self, name: str) -> Cluster | None:
        """Return a cluster, or None when nobody registered it."""
        return self._clusters.get(name)

    def list(self) -> Sequence[Cluster]:
        """Return all clusters, by name."""
        return [self._clusters[name] for name in self.names()]

    def names(self) -> Sequence[str]:
        """Return the names of all clusters."""
        return sorted(self._clusters)

    def agents(self) -> Mapping[str, str]:
        """Return agent -> name of its cluster."""
        return {each.agent: each.name for each in self._clusters.values() if each.agent}

    def add(self, cluster: Cluster) -> None:
        """Add a cluster.

        Raises:
            Conflict: the name is taken.
        """
        if cluster.name in self._clusters:
            raise Conflict(f"a cluster is registered as {cluster.name} already")
        self._clusters[cluster.name] = cluster

    def update(self, cluster: Cluster) -> None:
        """Replace what is known of a cluster.

        Raises:
            NotFound: it is not registered.
        """
        self._known(cluster.name)
        self._clusters[cluster.name] = cluster

    def remove(self, name: str) -> None:
        """Remove a cluster.

        Raises:
            NotFound: it is not registered.
        """
        self._known(name)
        del self._clusters[name]

    def _known(self, name: str) -> None:
        if name not in self._clusters:
            raise NotFound(f"no cluster is registered as {name}")


class MemoryNodeIndex:
    """Instance -> node."""

    def __init__(self) -> None:
        self._entries: dict[str, IndexEntry] = {}

    def find(self, instances: Sequence[str]) -> Mapping[str, IndexEntry]:
        """Return the entries that exist."""
        return {i: self._entries[i] for i in instances if i in self._entries}

    def put(self, entries: Sequence[IndexEntry]) -> None:
        """Write entries; the newest `seen` wins."""
        for entry in entries:
            known = self._entries.get(entry.instance)
            if known is None or known.seen <= entry.seen:
                self._entries[entry.instance] = entry


class MemoryFrames(FrameSink):
    """Every frame that was made, by cluster."""

    def __init__(self) -> None:
        self.of: dict[str, list[Frame]] = defaultdict(list)

    @override
    def latest(self, cluster: str, until: datetime | None = None) -> Frame | None:
        """Return the last frame, up to a time."""
        found = [each for each in self.of[cluster] if until is None or each.at <= until]
        return found[-1] if found else None

    @override
    def take(self, frame: Frame) -> None:
        """Keep a frame."""
        self.of[frame.cluster].append(frame)

    def since(self, cluster: str, at: datetime) -> Sequence[Frame]:
        """Return the frames from a time on."""
        return [frame for frame in self.of[cluster] if frame.at >= at]

    @override
    def watch(self, cluster: str) -> None:
        """Nothing is to be read."""

    @override
    def end(self, cluster: str, seconds: float) -> int:
        """Return that none was lost."""
        return 0


class MemoryReports:
    """Reports of interruptions."""

    def __init__(self) -> None:
        self._reports: dict[tuple[str, str], Report] = {}
        self._scores: dict[tuple[str, str], Score] = {}

    def merge(self, report: Report) -> Report:
        """Merge into what is stored under the same interruption, and return the result."""
        key = (report.cluster, report.interruption)
        stored = self._reports.get(key)
        self._reports[key] = stored.merged(report) if stored else report
        return self._reports[key]

    def list(self, cluster: str, limit: int = 50) -> Sequence[Report]:
        """Return the newest reports of a cluster, newest first."""
        mine = [r for r in self._reports.values() if r.cluster == cluster]
        return sorted(mine, key=_newest, reverse=True)[:limit]

    def scores(self, cluster: str, months: Sequence[str]) -> Sequence[Score]:
        """Return the scores that are kept of a cluster for these months, in the same order."""
        return [self._scores[cluster, m] for m in months if (cluster, m) in self._scores]

    def put_score(self, score: Score) -> None:
        """Write a score under the version that it has.

        Raises:
            Conflict: somebody else wrote in between.
        """
        known = self._scores.get((score.cluster, score.month))
        if score.version != (known.version if known else 0):
            raise Conflict(f"the score of {score.cluster} was written in between")
        self._scores[score.cluster, score.month] = replace(score, version=score.version + 1)


class MemoryPools:
    """The memory of capacity pools and zonal shifts."""

    def __init__(self) -> None:
        self._events: dict[tuple[str, object], PoolEvent] = {}
        self._shifts: dict[tuple[str, object], ShiftEvent] = {}
        self._held: dict[tuple[str, CapacityPool], HeldPool] = {}

    def read(self, region: str, now: datetime) -> Sequence[PoolEvent]:
        """Return the events that are not too old to count."""
        return [
            event
            for (where, _), event in self._events.items()
            if where == region and now - event.at < POOL_EVENTS_KEPT
        ]

    def put(self, region: str, events: Iterable[PoolEvent]) -> None:
        """Write events; one that is told again is the same."""
        self._events |= {(region, event.key): event for event in events}

    def memory(self, region: str, now: datetime) -> PoolMemory:
        """Return these events, and the pools whose hours are counted."""
        return PoolMemory(events=self.read(region, now), held=self.held(region))

    def held(self, region: str) -> Sequence[HeldPool]:
        """Return the pools whose hours are counted."""
        return [held for (where, _), held in self._held.items() if where == region]

    def count(self, region: str, before: HeldPool | None, after: HeldPool) -> None:
        """Write that an hour of a pool is counted.

        Raises:
            Conflict: another cluster of the region counted in between.
        """
        known = self._held.get((region, after.pool))
        if (known and known.at) != (before and before.at):
            raise Conflict(f"an hour of {after.pool} was counted in between")
        self._held[region, after.pool] = after

    def shifts(self, region: str, now: datetime) -> Sequence[ShiftEvent]:
        """Return what was told of zonal shifts that may still stand."""
        return [
            event
            for (where, _), event in self._shifts.items()
            if where == region and now - event.at < LONGEST_SHIFT[event.cause]
        ]

    def put_shift(self, region: str, event: ShiftEvent) -> None:
        """Write what was told of a zonal shift; told again it is the same."""
        self._shifts[region, event.key] = event


class MemoryTimes:
    """How long pods took to stop and to start."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, Ref], Samples] = {}

    def read(self, cluster: str, workloads: Collection[Ref]) -> Mapping[Ref, Samples]:
        """Return what is remembered of these workloads; those of which nothing is are left out."""
        return {w: self._told[cluster, w] for w in workloads if (cluster, w) in self._told}

    def merge(self, cluster: str, workload: Ref, told: Samples) -> None:
        """Merge into what is remembered; what is told again changes nothing."""
        known = self._told.get((cluster, workload), Samples())
        self._told[cluster, workload] = known.merged(told)


class MemoryLayouts:
    """The layouts chosen for workloads."""

    def __init__(self) -> None:
        self._chosen: dict[tuple[str, Ref], ChosenLayout] = {}

    def forget(self) -> None:
        """Lose all that is remembered."""
        self._chosen.clear()

    def read(self, cluster: str) -> Mapping[Ref, ChosenLayout]:
        """Return those of all workloads of a cluster."""
        return {workload: each for (of, workload), each in self._chosen.items() if of == cluster}

    def write(
        self, cluster: str, workload: Ref, before: ChosenLayout | None, after: ChosenLayout
    ) -> None:
        """Write the layout that is chosen for a workload, where what was read still stands.

        Raises:
            Conflict: another run chose in between.
        """
        known = self._chosen.get((cluster, workload))
        if (known and known.at) != (before and before.at):
            raise Conflict(f"the layout of {workload} was chosen in between")
        self._chosen[cluster, workload] = after


class AmpleLimits:
    """An account that keeps nobody from launching."""

    def quota(self) -> VcpuQuota:
        """Return more than anybody asks for."""
        return VcpuQuota(limit=10**6, used=0)

    def free_addresses(self, subnets: Sequence[str]) -> Mapping[str, int]:
        """Return as many for each subnet."""
        return dict.fromkeys(subnets, 10**6)

    def images(self, ids: Sequence[str]) -> Collection[str]:
        """Return all of them."""
        return ids


class MemoryAnnouncer:
    """Keeps what people would have been told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def tell(self, subject: str, text: str) -> None:
        """Keep a message."""
        self.told.append((subject, text))


class MemoryWakeUps:
    """Wake-ups that were sent, as (cluster, delay in seconds), for whoever plays the queue."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, int]] = []
        self.traceparents: list[str | None] = []
        """Of each."""

    def send(self, cluster: str, delays: Sequence[int], traceparent: str | None = None) -> None:
        """Send one wake-up for each delay, in seconds."""
        self.sent += [(cluster, delay) for delay in delays]
        self.traceparents += [traceparent for _ in delays]


class MemoryResyncs:
    """Resyncs that were asked for, for whoever plays the queue."""

    def __init__(self) -> None:
        self.sent: list[ResyncRequest] = []

    def send(self, requests: Sequence[ResyncRequest]) -> None:
        """Send one message for each request."""
        self.sent += requests


def _newest(report: Report) -> tuple[datetime, str]:
    return report.noticed, report.interruption
