"""What workloads lose in situations of real clusters, with Plimsoll, a plain drain, and nobody: `python -m benchmarks.situations`.

The drills are those of tests/drills/situations, in virtual time, so the figures are the same on every machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from plimsoll_simulation.rigs.simulated.rig import run
from plimsoll_simulation.scenario.drill import read_drill

DRILLS: Final = Path(__file__).parents[1] / "tests" / "drills" / "situations"
RESPONDERS: Final = ("plimsoll", "drain", "none")


def main() -> None:
    """Play all of them, and print a row for each workload."""
    table = Table("SITUATION", "WORKLOAD", *RESPONDERS)
    table.caption = (
        "seconds at zero · below quorum · below the ready floor · pods killed or cut short · "
        "ready-replica-seconds lost"
    )
    for folder in sorted(DRILLS.iterdir()):
        drill = read_drill(folder / "drill.yaml")
        played = [
            {
                row["name"]: row
                for row in run(drill, responder=who, seed=drill.scenario.seed)["workloads"]
            }
            for who in RESPONDERS
        ]
        for name, row in played[0].items():
            table.add_row(
                folder.name, f"{row['kind']} {name}", *(_figures(p[name]) for p in played)
            )
    Console(width=200).print(table)


def _figures(row: dict[str, Any]) -> str:
    lost = row["pods_killed"] + row["pods_cut_short"]
    return " · ".join(
        f"{figure:.0f}"
        for figure in (
            row["seconds_at_zero"],
            row["seconds_below_quorum"],
            row["seconds_below_floor"],
            lost,
            row["ready_replica_seconds_lost"],
        )
    )


if __name__ == "__main__":
    main()
