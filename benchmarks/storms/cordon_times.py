"""The times of a storm's nodes, and what is made of those of several runs."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from plimsoll_simulation.measure.figures import percentile

RANKS = (0.5, 0.99, 1.0)
HEADINGS = ("p50", "p99", "max", "of the nodes")
PARTS = {
    "event to cordon": "total",
    "  before our code": "before",
    "  in our code": "inside",
    "    first batches, which open connections": "first",
    "    later batches": "later",
}


@dataclass(kw_only=True)
class CordonTimes:
    """Of the nodes of one run, in seconds."""

    nodes: int
    total: list[float] = field(default_factory=list)
    before: list[float] = field(default_factory=list)
    inside: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    """In our code, for nodes of batches that began before any node was cordoned."""
    later: list[float] = field(default_factory=list)

    @classmethod
    def split(
        cls,
        noticed: Mapping[str, datetime],
        cordoned: Mapping[str, datetime],
        started: Mapping[str, datetime],
    ) -> CordonTimes:
        """Split the time of each node where the function started that cordoned it.

        A node counts in `total` alone where the log does not tell: a function that was killed leaves
        no line, and of its nodes only a later one, which had the notice again, may say something.
        """
        times = cls(nodes=len(noticed))
        soonest = min(cordoned.values(), default=None)
        for node, notice in noticed.items():
            if node not in cordoned or soonest is None:
                continue
            times.total.append((cordoned[node] - notice).total_seconds())
            start = started.get(node)
            if start is not None and start <= cordoned[node]:
                inside = (cordoned[node] - start).total_seconds()
                times.before.append((start - notice).total_seconds())
                times.inside.append(inside)
                (times.first if start < soonest else times.later).append(inside)
        return times


def spread(figures: Sequence[float], show: Callable[[float], str]) -> str:
    """Return the median of the runs; of several also the least and the most."""
    if not figures:
        return "-"
    middle = show(statistics.median(figures))
    if len(figures) == 1:
        return middle
    return f"{middle} ({show(min(figures))}-{show(max(figures))})"


def seconds(value: float) -> str:
    """Return seconds as text."""
    return f"{value:.2f} s"


def row(runs: Sequence[tuple[int, Sequence[float]]]) -> list[str]:
    """Return the ranks of the runs, and the share of the nodes; a run is its nodes and its times."""
    measured = [times for _, times in runs if times]
    cells = [spread([_rank(times, rank) for times in measured], seconds) for rank in RANKS]
    share = sum(len(times) for _, times in runs) / max(1, sum(nodes for nodes, _ in runs))
    return [*cells, f"{share:.0%}" if measured else "0%"]


def rows(runs: Sequence[CordonTimes]) -> list[list[str]]:
    """Return the rows of all parts of the time to the cordon."""
    return [
        [name, *row([(run.nodes, getattr(run, part)) for run in runs])]
        for name, part in PARTS.items()
    ]


def _rank(times: Iterable[float], rank: float) -> float:
    found = percentile(times, rank)
    assert found is not None
    return found
