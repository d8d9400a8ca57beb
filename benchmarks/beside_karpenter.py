"""What Plimsoll gains beside Karpenter or EKS, which drain the same nodes, over each of them alone.

Six spot nodes with the pods of a drill in tests/drills/other-controllers get their notices in one second: those of a
NodePool, or with `--drainer eks` those of two managed node groups. By default all is played in virtual time, each
run with the next seed; with `--rig cluster` Karpenter itself on a real control plane, four minutes a run:

    python -m benchmarks.beside_karpenter [--rig cluster] [--runs 3] [SITUATION ...]
    python -m benchmarks.beside_karpenter --drainer eks --runs 6
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import starmap
from pathlib import Path
from statistics import median
from typing import Final

from rich.console import Console

from benchmarks.output import machine, table
from plimsoll_simulation.measure.report import Report
from plimsoll_simulation.rigs.simulated.rig import run
from plimsoll_simulation.scenario.drill import read_drill
from plimsoll_testbed.rigs.beside_karpenter import Setting, play

DRILLS: Final = Path(__file__).parents[1] / "tests" / "drills" / "other-controllers"
DRILL: Final = DRILLS / "karpenter-hears-later"
DELAY: Final = "queueDelay: 15s"
NOTICE: Final = "    - {at: 10s, notice: spot-interruption, nodes: {capacity: spot}}\n"
DIES: Final = "".join(
    f"    - {{at: 10s, fault: function-killed, function: {name}, for: 5m}}\n"
    for name in ("drains", "notices", "sweep")
)
NO_NOTICE: Final = "    - {at: 10s, notice: none, reclaim: 1s, nodes: {capacity: spot, count: 1}}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What is changed in the drill, and in the run on a real control plane."""

    folder: Path = DRILL
    drill: Mapping[str, str] = field(default_factory=dict)
    setting: Setting | None = None
    """None: it is played in virtual time only."""


SITUATIONS: Final[Mapping[str, Situation]] = {
    "the queue is delayed by 15 s": Situation(setting=Setting()),
    "nodes take 70 s": Situation(
        drill={"startup: 40s": "startup: 70s"}, setting=Setting(node_startup="70s")
    ),
    "the NodePool is at its limit": Situation(
        drill={"max: 12": "max: 6"}, setting=Setting(most_nodes=6)
    ),
    "Plimsoll dies in each run": Situation(drill={NOTICE: NOTICE + DIES}),
    "a node ends without a notice": Situation(drill={NOTICE: NO_NOTICE}),
    "no delay": Situation(drill={DELAY: "queueDelay: 0s"}, setting=Setting(queue_delay=0.0)),
    "no delay, and the NodePool is at its limit": Situation(
        drill={DELAY: "queueDelay: 0s", "max: 12": "max: 6"},
        setting=Setting(queue_delay=0.0, most_nodes=6),
    ),
}
GROUPS: Final = DRILLS / "managed-groups-lose-all-spot"
DRAINS_AFTER: Final = "queueDelay: 5s"
LABEL: Final = ", labels: {plimsoll.dev/guard: warned}"
GROUPS_NOTICE: Final = "    - {at: 10s, notice: spot-interruption, nodes: {capacity: spot}}\n"
ADVICE: Final = GROUPS_NOTICE.replace("spot-interruption", "rebalance-recommendation")
LATER: Final = "".join(
    f"    - {{at: 70s, notice: spot-interruption, nodes: {{names: [{name}]}}}}\n"
    for group in ("spot-m5", "spot-m6i")
    for name in [", ".join(f"{group}-{number}" for number in (1, 2, 3))]
)
NO_SPOT: Final = "    - {at: 9s, fault: insufficient-capacity, for: 5m, nodes: {capacity: spot}}\n"


def _beside_eks(timeline: str, after_s: int) -> Mapping[str, Situation]:
    """Return a situation without and with the guard at a warning."""
    drill = {GROUPS_NOTICE: timeline, DRAINS_AFTER: f"queueDelay: {after_s}s"}
    return {
        "": Situation(folder=GROUPS, drill={**drill, LABEL: ""}),
        ", guard at a warning": Situation(folder=GROUPS, drill=drill),
    }


BESIDE_EKS: Final[Mapping[str, Situation]] = {
    f"{name}{guard}": situation
    for name, timeline, after_s in (
        ("notice, EKS evicts after 0 s", GROUPS_NOTICE, 0),
        ("notice, EKS evicts after 2 s", GROUPS_NOTICE, 2),
        ("notice, EKS evicts after 5 s", GROUPS_NOTICE, 5),
        ("notice, EKS evicts after 15 s", GROUPS_NOTICE, 15),
        ("recommendation, no notice", ADVICE, 0),
        ("recommendation, notice a minute later, no spot", NO_SPOT + ADVICE + LATER, 0),
    )
    for guard, situation in _beside_eks(timeline, after_s).items()
}
STATEFUL: Final = "db"
"""Of the run on a real control plane."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one run came to."""

    lost: float
    """Ready replica seconds that Deployments lost."""
    zero: float
    """The seconds at zero of the Deployment that had the most."""
    lost_of_set: float
    zero_of_set: float
    killed: int
    nodes: int
    """How many were added."""


def played(situation: Situation, responder: str, *, run_number: int = 0) -> Figures:
    """Play a situation in virtual time with a responder: `plimsoll`, or `none` for the other drainer alone."""
    with tempfile.TemporaryDirectory() as folder:
        for file in situation.folder.iterdir():
            text = file.read_text(encoding="utf-8")
            for old, new in situation.drill.items():
                text = text.replace(old, new)
            (Path(folder) / file.name).write_text(text, encoding="utf-8")
        drill = read_drill(Path(folder) / "drill.yaml")
        return _figures(run(drill, responder=responder, seed=drill.scenario.seed + run_number))


def played_on_cluster(setting: Setting, responder: str) -> Figures:
    """Play a situation beside Karpenter itself."""
    [objects] = read_drill(DRILL / "drill.yaml").objects.values()
    seen = play(objects, replace(setting, plimsoll=responder == "plimsoll"))
    lost, zero = dict(seen.lost), dict(seen.zero)
    lost_of_set, zero_of_set = lost.pop(STATEFUL), zero.pop(STATEFUL)
    return Figures(
        lost=sum(lost.values()),
        zero=max(zero.values()),
        lost_of_set=lost_of_set,
        zero_of_set=zero_of_set,
        killed=seen.killed,
        nodes=seen.launched,
    )


def _figures(report: Report) -> Figures:
    sets = [row for row in report["workloads"] if row["kind"] == "StatefulSet"]
    others = [row for row in report["workloads"] if row["kind"] != "StatefulSet"]
    return Figures(
        lost=sum(row["ready_replica_seconds_lost"] for row in others),
        zero=max(row["seconds_at_zero"] for row in others),
        lost_of_set=sum(row["ready_replica_seconds_lost"] for row in sets),
        zero_of_set=max(row["seconds_at_zero"] for row in sets),
        killed=report["totals"]["pods_killed"],
        nodes=sum(row["nodes_added"] for row in report["capacity"]),
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rig", choices=("simulated", "cluster"), default="simulated")
    parser.add_argument("--drainer", choices=("karpenter", "eks"), default="karpenter")
    parser.add_argument("--runs", type=int, default=1, help="of each row")
    parser.add_argument("situations", nargs="*", metavar="SITUATION", help="[default: all]")
    chosen = parser.parse_args(argv)
    known = SITUATIONS if chosen.drainer == "karpenter" else BESIDE_EKS
    title = f"{machine()}\n{chosen.drainer} alone → with Plimsoll, medians of {chosen.runs}"
    headings = "lost, Deployments", "zero, s", "lost, StatefulSets", "zero, s", "killed", "nodes"
    made, console = table(title, "situation", *headings), Console(width=150)
    for name in chosen.situations or known:
        situation = known[name]
        found: dict[str, list[Figures]] = {"none": [], "plimsoll": []}
        for number in range(chosen.runs):
            for responder, figures in found.items():
                if chosen.rig == "simulated":
                    figures.append(played(situation, responder, run_number=number))
                elif situation.setting is not None:
                    figures.append(played_on_cluster(situation.setting, responder))
                    console.log(name, responder, figures[-1])
        if found["none"]:
            made.add_row(
                name,
                *starmap("{:.0f} → {:.0f}".format, zip(*map(medians, found.values()), strict=True)),
            )
    console.print(made)


def medians(figures: Sequence[Figures]) -> Sequence[float]:
    """Return the median of each figure over some runs."""
    return [median(getattr(f, name) for f in figures) for name in Figures.__dataclass_fields__]


if __name__ == "__main__":
    main()
