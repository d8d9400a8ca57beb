"""What a rehearsal foretells: the figures of its drill in the names of the live cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from plimsoll.domain.disruptions import leaves
from plimsoll_testbed.measure.report import Report
from plimsoll_testbed.rehearsal.live import LiveCluster
from plimsoll_testbed.rehearsal.obstacles import Obstacle, obstacles
from plimsoll_testbed.rehearsal.scenario import Modelled
from plimsoll_testbed.rehearsal.scope import Scope


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
class Prediction:
    """What would happen if a scope were reclaimed now."""

    cluster: str
    scope: str
    at: datetime
    nodes: Sequence[str]
    """The live nodes that go."""
    pods: int
    """On them, but for those that belong to their node."""
    settled: bool
    """Whether everything has its replicas again at the end."""
    seconds: float
    """From the notices to the end."""
    outcomes: Sequence[Outcome]
    """All workloads, the worst first."""
    asked: Sequence[Asked]
    obstacles: Sequence[Obstacle]
    notes: Sequence[str]
    """What was assumed, and what was left out."""

    @property
    def at_zero(self) -> Sequence[Outcome]:
        """The workloads of which none would be Ready for a while."""
        return [each for each in self.outcomes if each.seconds_at_zero]


def prediction_of(live: LiveCluster, scope: Scope, drill: Modelled, report: Report) -> Prediction:
    """Return what the report of a drill foretells of the cluster that it stands for."""
    notices = min(node["noticed"] for node in report["nodes"] if node["noticed"] is not None)
    seen = live.seen.among(groups=live.groups or ())
    names = {node.name for node in drill.lost}
    outcomes = [_outcome(row) for row in report["workloads"]]
    return Prediction(
        cluster=live.name,
        scope=str(scope),
        at=live.at,
        nodes=sorted(names),
        pods=sum(leaves(pod) for name in names for pod in live.seen.on_node.get(name, ())),
        settled=report["settled"],
        seconds=report["seconds"] - notices,
        outcomes=sorted(outcomes, key=lambda each: (each.badness, each.workload), reverse=True),
        asked=[
            _asked(row, drill.fleet.live_groups, notices)
            for row in report["capacity"]
            if row["first_asked"] is not None and row["group"] in drill.fleet.live_groups
        ],
        obstacles=obstacles(seen, drill.lost, live.at),
        notes=drill.notes,
    )


def _outcome(row: Mapping[str, Any]) -> Outcome:
    return Outcome(
        workload=f"{row['kind']} {row['namespace']}/{row['name']}",
        **{name: row[name] for name in Outcome.__dataclass_fields__ if name != "workload"},
    )


def _asked(row: Mapping[str, Any], names: Mapping[str, str], notices: float) -> Asked:
    return Asked(
        group=names[row["group"]],
        capacity=row["capacity"],
        first_asked=round(row["first_asked"] - notices, 3),
        nodes_added=row["nodes_added"],
    )
