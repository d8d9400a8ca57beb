"""The marks of a workload: how many of its replicas stay Ready if spot instances are reclaimed together.

A mark is its Ready replicas less those that stand where the loss strikes: what stays at once, before any replacement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from plimsoll.domain.kubernetes import Node, Ref
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement.reserve import LOSSES
from plimsoll.domain.placement.spread_groups import SPOT


class Mark(NamedTuple):
    """What the worst loss of a kind leaves."""

    kind: str
    """`node`, `family`, `zone` or `all spot`: only spot instances go."""
    name: str
    """Which of its kind is the worst; empty where no loss of the kind strikes the workload."""
    stays: int
    """Replicas that stay Ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """The marks of one workload."""

    workload: Ref
    ready: int
    """How many replicas are Ready now."""
    marks: tuple[Mark, ...]
    """One of each kind, from the smallest loss to the largest."""
    on_spot: Mapping[str, int]
    """Spot node -> how many of these stand there."""

    def without(self, nodes: Collection[str]) -> int:
        """Return how many replicas stay Ready if these nodes go."""
        return self.ready - sum(self.on_spot.get(name, 0) for name in nodes)


def marks_of(seen: Observation) -> Iterator[Marks]:
    """Yield the marks of each workload that has a Ready replica."""
    spot = {node.name: node for node in seen.nodes if node.capacity == SPOT}
    for workload in seen.workloads:
        ready = seen.serving.get(workload.ref, ())
        there = Counter(pod.node for pod in ready if pod.node is not None and pod.node in spot)
        if ready:
            yield Marks(
                workload=workload.ref,
                ready=len(ready),
                marks=tuple(_worst(kind, len(ready), there, spot) for kind in LOSSES),
                on_spot=dict(there),
            )


def _worst(kind: str, ready: int, there: Mapping[str, int], spot: Mapping[str, Node]) -> Mark:
    lost = Counter[str]()
    for name, pods in there.items():
        taken_by = LOSSES[kind](spot[name])
        if taken_by is not None:  # the zone of a node may be unknown
            lost[taken_by] += pods
    name, pods = min(lost.items(), key=lambda each: (-each[1], each[0]), default=("", 0))
    return Mark(kind=kind, name=name, stays=ready - pods)
