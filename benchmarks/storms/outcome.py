"""What came of one run on a real control plane, of Plimsoll or of a bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from benchmarks.storms.scenario import NOTICE_SECONDS, PODS
from benchmarks.storms.times import Times
from benchmarks.storms.watch import Seen
from benchmarks.storms.workers import Peak


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One run."""

    times: Times
    emptied: Sequence[float]
    """From notice to empty, in seconds, of the nodes that were empty in the end."""
    left: int
    """Pods that were on the noticed nodes in the end."""
    seen: Seen
    calls: Counter[str]
    """To the Kubernetes API, by HTTP method, as its audit log has them."""
    aws_calls: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    undone: Counter[str] = field(default_factory=Counter)
    """Actions of the functions, by name: those that were done, and those that were refused."""
    memory: Mapping[str, Peak] = field(default_factory=dict)
    complaints: Sequence[str] = ()
    """What went wrong. It is not judged here, but has to be known."""

    @property
    def calls_per_pod(self) -> float:
        """Requests to the Kubernetes API for each pod that left its node; 0 where none left."""
        moved = self.times.nodes * PODS - self.left
        return self.calls.total() / moved if moved else 0.0

    @property
    def in_time(self) -> Sequence[float]:
        """Of `emptied`, those that were empty before their instance would have gone."""
        return [seconds for seconds in self.emptied if seconds <= NOTICE_SECONDS]


def emptied(noticed: Mapping[str, datetime], seen: Seen) -> Sequence[float]:
    """Return how long it took until each node was empty."""
    return [(seen.empty[n] - at).total_seconds() for n, at in noticed.items() if n in seen.empty]


def left(noticed: Mapping[str, datetime], seen: Seen) -> int:
    """Return how many pods are on the noticed nodes."""
    return sum(seen.pods.get(node, 0) for node in noticed)
