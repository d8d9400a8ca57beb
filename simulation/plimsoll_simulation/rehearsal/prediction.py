"""What a rehearsal predicts: the figures of its drill in the names of the live cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from plimsoll.domain.disruptions import StopTime
from plimsoll.domain.kubernetes import Node
from plimsoll.domain.observation import leaves
from plimsoll.domain.reports import Report, rehearsal_report
from plimsoll_simulation.measure.report import Report as DrillReport
from plimsoll_simulation.rehearsal.jobs import failing_jobs
from plimsoll_simulation.rehearsal.live import LiveCluster
from plimsoll_simulation.rehearsal.marks import MarkedWorkload, marked_workloads
from plimsoll_simulation.rehearsal.obstacles import Obstacle, obstacles
from plimsoll_simulation.rehearsal.scenario import Modelled
from plimsoll_simulation.rehearsal.scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one workload would feel."""

    workload: str
    replicas: int
    ready_floor: int
    min_ready: int
    seconds_below_floor: float
    seconds_at_zero: float
    pods_killed: int
    pods_cut_short: int
    stop: str
    """How long its pods need to stop, and how that is known."""

    @property
    def badness(self) -> tuple[float, ...]:
        """Of two outcomes the worse has more."""
        return self.seconds_at_zero, self.seconds_below_floor, self.pods_killed, self.pods_cut_short

    @property
    def unharmed(self) -> bool:
        """Whether it keeps its floor, and every pod stops in its own time."""
        return not any(self.badness)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a node group would be asked for."""

    group: str
    capacity: str
    first_asked: float
    """Seconds from the notices."""
    nodes_added: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LostNode:
    """A live node that goes."""

    name: str
    instance: str | None
    empty_after: float | None
    """Seconds from its notice; None: not before its instance goes."""
    workloads: Sequence[str]
    """On it, but for what belongs to the node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What would happen if a scope were reclaimed now."""

    cluster: str
    scope: str
    at: datetime
    nodes: Sequence[LostNode]
    pods: int
    """On them, but for those that belong to their node."""
    settled: bool
    """Whether everything has its replicas again at the end."""
    seconds: float
    """From the notices to the end."""
    outcomes: Sequence[Outcome]
    """All workloads, the worst first."""
    marks: Sequence[MarkedWorkload]
    """What stays Ready by a rule, beside what was played."""
    asked: Sequence[Asked]
    obstacles: Sequence[Obstacle]
    notes: Sequence[str]
    """What was assumed, and what was left out."""

    def reports(self) -> Iterator[Report]:
        """Yield what is predicted of each node as the report of an interruption would tell it."""
        lowest = {each.workload: each.min_ready for each in self.outcomes}
        for node in self.nodes:
            if node.instance is not None:
                yield rehearsal_report(
                    self.cluster,
                    instance=node.instance,
                    node=node.name,
                    scope=self.scope,
                    at=self.at,
                    emptied=None
                    if node.empty_after is None
                    else timedelta(seconds=node.empty_after),
                    lowest_ready={w: lowest[w] for w in node.workloads if w in lowest},
                )

    @property
    def at_zero(self) -> Sequence[Outcome]:
        """The workloads of which none would be Ready for a while."""
        return [each for each in self.outcomes if each.seconds_at_zero]


def prediction_of(
    live: LiveCluster, scope: Scope, drill: Modelled, report: DrillReport
) -> Prediction:
    """Return what the report of a drill predicts of the cluster that it stands for."""
    notices = min(node["noticed"] for node in report["nodes"] if node["noticed"] is not None)
    rows = {row["name"]: row for row in report["nodes"]}
    nodes = [_lost(live, node, rows[drill.fleet.names[node.name]]) for node in drill.lost]
    outcomes = [_outcome(row, drill.stops) for row in report["workloads"]]
    lowest = {each.workload: each.min_ready for each in outcomes}
    return Prediction(
        cluster=live.name,
        scope=str(scope),
        at=live.at,
        nodes=sorted(nodes, key=lambda node: node.name),
        pods=sum(leaves(pod) for each in nodes for pod in live.seen.on_node.get(each.name, ())),
        settled=report["settled"],
        seconds=report["seconds"] - notices,
        outcomes=sorted(outcomes, key=lambda each: (each.badness, each.workload), reverse=True),
        marks=marked_workloads(live, {node.name for node in nodes}, lowest),
        asked=[
            _asked(row, drill.fleet.live_groups, notices)
            for row in report["capacity"]
            if row["first_asked"] is not None and row["group"] in drill.fleet.live_groups
        ],
        obstacles=[*obstacles(live.observed, drill.lost, live.at), *failing_jobs(live, drill.lost)],
        notes=drill.notes,
    )


def _outcome(row: Mapping[str, Any], stops: Mapping[str, StopTime]) -> Outcome:
    workload = f"{row['kind']} {row['namespace']}/{row['name']}"
    told: dict[str, Any] = {"workload": workload, "stop": str(stops.get(workload, ""))}
    figures = Outcome.__dataclass_fields__.keys() - told.keys()
    return Outcome(**told, **{name: row[name] for name in figures})


def _lost(live: LiveCluster, node: Node, row: Mapping[str, Any]) -> LostNode:
    there = [pod for pod in live.seen.on_node.get(node.name, ()) if leaves(pod)]
    empty = row["empty"]
    return LostNode(
        name=node.name,
        instance=node.instance,
        empty_after=None if empty is None else round(empty - row["noticed"], 1),
        workloads=sorted({str(live.seen.workload_of(pod)) for pod in there}),
    )


def _asked(row: Mapping[str, Any], names: Mapping[str, str], notices: float) -> Asked:
    return Asked(
        group=names[row["group"]],
        capacity=row["capacity"],
        first_asked=round(row["first_asked"] - notices, 3),
        nodes_added=row["nodes_added"],
    )
