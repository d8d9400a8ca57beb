"""What Karpenter's queue delay and the annotation of Plimsoll gain: `python -m benchmarks.beside_karpenter`.

Each row plays one drill of tests/drills/other-controllers twice, with Karpenter alone and with Plimsoll beside it, changed
as the row says. Six spot nodes of a NodePool with 24 pods get their notices in one second.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.output import table
from plimsoll_simulation.measure.report import Report
from plimsoll_simulation.rigs.simulated.rig import run
from plimsoll_simulation.scenario.drill import read_drill

DRILL: Final = (
    Path(__file__).parents[1] / "tests" / "drills" / "other-controllers" / "karpenter-hears-later"
)
DELAY: Final = "queueDelay: 15s"
NOTICE: Final = "    - {at: 10s, notice: spot-interruption, nodes: {capacity: spot}}\n"
DIES: Final = "".join(
    f"    - {{at: 10s, fault: function-killed, function: {name}, for: 5m}}\n"
    for name in ("drains", "notices", "sweep")
)
NO_NOTICE: Final = "    - {at: 10s, notice: none, reclaim: 1s, nodes: {capacity: spot, count: 1}}\n"

SITUATIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "the queue is delayed by 15 s": {},
    "nodes take 70 s": {"startup: 40s": "startup: 70s"},
    "the NodePool is at its limit": {"max: 12": "max: 6"},
    "Plimsoll dies in each run": {NOTICE: NOTICE + DIES},
    "a node ends without a notice": {NOTICE: NO_NOTICE},
    "no delay": {DELAY: "queueDelay: 0s"},
    "no delay, and the NodePool is at its limit": {
        DELAY: "queueDelay: 0s",
        "max: 12": "max: 6",
    },
}
"""What is changed in the drill."""
STATEFUL: Final = "db"


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


def played(situation: str, responder: str) -> Figures:
    """Play a situation with a responder: `plimsoll`, or `none` for Karpenter alone."""
    with tempfile.TemporaryDirectory() as folder:
        for file in DRILL.iterdir():
            text = file.read_text(encoding="utf-8")
            for old, new in SITUATIONS[situation].items():
                text = text.replace(old, new)
            (Path(folder) / file.name).write_text(text, encoding="utf-8")
        drill = read_drill(Path(folder) / "drill.yaml")
        return _figures(run(drill, responder=responder, seed=drill.scenario.seed))


def _figures(report: Report) -> Figures:
    rows = {row["name"]: row for row in report["workloads"]}
    of_set = rows.pop(STATEFUL)
    return Figures(
        lost=sum(row["ready_replica_seconds_lost"] for row in rows.values()),
        zero=max(row["seconds_at_zero"] for row in rows.values()),
        lost_of_set=of_set["ready_replica_seconds_lost"],
        zero_of_set=of_set["seconds_at_zero"],
        killed=report["totals"]["pods_killed"],
        nodes=sum(row["nodes_added"] for row in report["capacity"]),
    )


def main() -> None:
    """Print the table."""
    made = table(
        "Karpenter alone → with Plimsoll",
        "situation",
        "lost, Deployments",
        "zero, s",
        "lost, StatefulSet",
        "zero, s",
        "killed",
        "nodes",
    )
    for situation in SITUATIONS:
        alone, ours = played(situation, "none"), played(situation, "plimsoll")
        made.add_row(
            situation,
            *(
                f"{getattr(alone, name):.0f} → {getattr(ours, name):.0f}"
                for name in Figures.__dataclass_fields__
            ),
        )
    Console(width=140).print(made)


if __name__ == "__main__":
    main()
