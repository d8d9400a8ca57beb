"""Keeps what the figures of a drill add up: how counts went over time, and what was said when.

It hears from `measure.py` what that measures anyway, and a page is drawn from it. What happened
before time 0 is kept as the state at time 0, and of one instant only the last state counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from plimsoll_simulation.measure.lines import Line, Log
from plimsoll_simulation.measure.workload_metrics import WorkloadId, WorkloadMetrics

type Fate = Literal["evicted", "killed", "cut short"]


class Level(NamedTuple):
    """How a workload stood from a moment on."""

    seconds: float
    ready: int
    replicas: int
    """What it was measured against: a raised count binds once it was reached."""
    floor: int
    overruled: bool = False
    """Whether its autoscaler held it to fewer than its owner declared."""


class Load(NamedTuple):
    """How many pods were on a node from a moment on, but for daemons."""

    seconds: float
    pods: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFate:
    """The end of one pod that the report counts."""

    seconds: float
    fate: Fate
    pod: str
    workload: WorkloadId
    instance: str | None
    """Where it was, if that is one of the fleet."""


@dataclass(slots=True, kw_only=True)
class NodeTrack:
    """One instance."""

    cluster: str
    name: str
    instance: str
    group: str
    launched: float
    joined: float | None = None
    """When its node was seen first."""
    loads: list[Load] = field(default_factory=list)


class History:
    """What happened in one drill."""

    def __init__(self) -> None:
        self._zero: datetime | None = None
        self.levels: dict[WorkloadId, list[Level]] = {}
        self.nodes: dict[str, NodeTrack] = {}
        """By instance id, in the order of their launch."""
        self._log = Log()
        self.fates: list[PodFate] = []
        self.owners: dict[str, WorkloadId] = {}
        """Of the pods, by `namespace/name`; clusters may share a name, and then the last counts."""
        self._pods: dict[str, tuple[str, WorkloadId]] = {}

    def begin(self, now: datetime, workload_metrics: Iterable[WorkloadMetrics]) -> None:
        """Take in that this is time 0."""
        self._zero = now
        for metrics in workload_metrics:
            self.counts(now, metrics)

    def counts(self, now: datetime, metrics: WorkloadMetrics) -> None:
        """Take in that a workload's counts may have changed."""
        if not metrics.counted:
            return
        newer = Level(
            self._at(now),
            len(metrics.ready),
            metrics.bound,
            metrics.bound_floor,
            metrics.overruled,
        )
        levels = self.levels.setdefault(metrics.id, [])
        if levels and levels[-1].seconds == newer.seconds:
            levels.pop()
        if not levels or levels[-1][1:] != newer[1:]:
            levels.append(newer)

    def launched(self, now: datetime, cluster: str, group: str, instance: str, node: str) -> None:
        """Take in that an instance runs."""
        self.nodes[instance] = NodeTrack(
            cluster=cluster, name=node, instance=instance, group=group, launched=self._at(now)
        )

    def joined(self, now: datetime, instance: str) -> None:
        """Take in that the node of an instance was seen; the first time counts."""
        track = self.nodes[instance]
        if track.joined is None:
            track.joined = self._at(now)

    def load(self, now: datetime, instance: str, pods: int) -> None:
        """Take in how many pods are on an instance."""
        loads, at = self.nodes[instance].loads, self._at(now)
        if loads and loads[-1].seconds == at:
            loads.pop()
        if not loads or loads[-1].pods != pods:
            loads.append(Load(at, pods))

    def pod(self, uid: str, name: str, metrics: WorkloadMetrics | None) -> None:
        """Take in whose pod one is; None: it counts nowhere."""
        if metrics is not None:
            self._pods[uid] = (name, metrics.id)
            self.owners[f"{metrics.id[1]}/{name}"] = metrics.id

    def fate(self, now: datetime, fate: Fate, uid: str, instance: str | None) -> None:
        """Take in how a pod ends."""
        if self._zero is not None and uid in self._pods:
            pod, workload = self._pods[uid]
            self.fates.append(
                PodFate(
                    seconds=self._at(now), fate=fate, pod=pod, workload=workload, instance=instance
                )
            )

    @property
    def lines(self) -> Sequence[Line]:
        """What was said since time 0, in the order of time."""
        return self._log.lines

    def said(self, seconds: float, what: str) -> None:
        """Take in what a listener hears; before time 0 a rig tells of its own affairs."""
        if self._zero is not None:
            self._log.take(Line(max(0.0, seconds), what))

    def _at(self, now: datetime) -> float:
        return 0.0 if self._zero is None else max(0.0, (now - self._zero).total_seconds())
