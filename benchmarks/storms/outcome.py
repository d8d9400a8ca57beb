"""What came of one run on a real control plane, whoever reacted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import override

from benchmarks.storms.cordon_times import CordonTimes
from benchmarks.storms.scenario import AFTER_SECONDS, NOTICE_SECONDS, PODS
from benchmarks.storms.watch import Seen
from benchmarks.storms.workers import Peak


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One run."""

    times: CordonTimes
    noticed: datetime
    """When the first node had its notice."""
    emptied: Sequence[float]
    """From notice to empty, in seconds, of the nodes that were empty in the end."""
    killed: int
    """Pods that still ran when their instances went."""
    seen: Seen
    calls: Counter[str]
    """To the Kubernetes API, by HTTP method, as its audit log has them."""
    aws_calls: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    undone: Counter[str] = field(default_factory=Counter)
    """Actions of the functions, by name: those that were done, and those that were refused."""
    memory: Mapping[str, Peak] = field(default_factory=dict)
    cores: float = 0.0
    """How many processors the functions and their emulator took on average; 0 where there are none."""
    complaints: Sequence[str] = ()
    """What went wrong. It is not judged here, but has to be known."""

    @override
    def __str__(self) -> str:
        """Return what is worth knowing before all runs have ended."""
        return (
            f"{len(self.in_time)} of {self.times.nodes} nodes empty in time, {self.killed} pods killed, "
            f"{self.lost:,.0f} ready-replica-seconds lost, then {self.lost_after:,.0f}, "
            f"{self.requests_lost} requests lost, then {self.requests_lost_after}, "
            f"{self.calls_per_pod:.1f} calls for each pod"
        )

    @property
    def calls_per_pod(self) -> float:
        """Requests to the Kubernetes API for each pod that left its node; 0 where none left."""
        moved = self.times.nodes * PODS - self.killed
        return self.calls.total() / moved if moved else 0.0

    @property
    def gone(self) -> datetime:
        """When the instances went."""
        return self.noticed + timedelta(seconds=NOTICE_SECONDS)

    @property
    def lost(self) -> float:
        """Ready-replica-seconds lost until the instances went."""
        return self._lost(self.noticed, self.gone)

    @property
    def lost_after(self) -> float:
        """Ready-replica-seconds lost from then on, until all serve again or nobody looks on."""
        return self._lost(self.gone, self.gone + timedelta(seconds=AFTER_SECONDS))

    @property
    def requests_lost(self) -> int:
        """Requests that got no answer until the instances went."""
        return sum(at < self.gone for at in self.seen.lost)

    @property
    def requests_lost_after(self) -> int:
        """Requests that got no answer from then on, until all serve again or nobody looks on."""
        return len(self.seen.lost) - self.requests_lost

    def _lost(self, since: datetime, until: datetime) -> float:
        steps = [*self.seen.missing, (until, 0)]
        return sum(
            count * max(0.0, (min(end, until) - max(start, since)).total_seconds())
            for (start, count), (end, _) in pairwise(steps)
        )

    @property
    def in_time(self) -> Sequence[float]:
        """Of `emptied`, those that were empty before their instance would have gone."""
        return [seconds for seconds in self.emptied if seconds <= NOTICE_SECONDS]


def emptied(noticed: Mapping[str, datetime], seen: Seen) -> Sequence[float]:
    """Return how long it took until each node was empty."""
    return [(seen.empty[n] - at).total_seconds() for n, at in noticed.items() if n in seen.empty]
