"""What training and serving lose where recorded spot capacity goes away, by who reacts to the notice.

Capacity per pool and tick, as recorded, limits the simulated EC2: it refuses launches beyond, and where fewer
instances are left than run, it gives the others their notice of two minutes. Gangs train, and a quarter of the
instances serves. Traces are read from a folder and are not in this repository:
https://github.com/skypilot-org/spot-traces. Run it from the repository:

    .venv/bin/python -m benchmarks.gpu_spot_replay --traces FOLDER [--stretches 3] [--seed 1]

Everything is judged by which pods run and which instances are there. Virtual time: the figures hang on the seed only.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.gpu_spot_replay.play import CONTENDERS, LEAST, Contender, Outcome, Replay
from benchmarks.gpu_spot_replay.traces import Region, read_regions, spread_over, stretches
from benchmarks.gpu_spot_replay.training import READS, SAVES, Trainer
from benchmarks.output import machine, table

CAPTION: Final = (
    "steps lost: seconds since the last checkpoint, times pods; of a stretch: median, least-most. no step: seconds in which a "
    "gang was not whole or wrote a checkpoint, times pods. told: pods of gangs on a node with a notice that had their "
    "deadline within 5 s. half killed: gangs of which pods ran on after the first had ended. replicas lost, at zero, killed: "
    "ready-replica-seconds, seconds without one, and pods of serving. on-demand: instance-hours."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One stretch with one contender and one trainer."""

    region: Region
    ticks: Sequence[tuple[int, ...]]
    contender: Contender
    trainer: Trainer
    seed: int

    def play(self) -> Outcome:
        """Return what it comes to."""
        with Replay(
            self.region,
            self.ticks,
            contender=self.contender,
            trainer=self.trainer,
            seed=self.seed,
        ) as replay:
            return replay.outcome()


def main() -> None:
    """Print a table for each region."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--traces", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--stretches", type=int, default=3, help="Of each region, at most.")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    out = Console(width=150)
    out.print(machine("plimsoll"))
    regions = read_regions(chosen.traces)
    large = [region for region in regions if sum(region.whole) >= LEAST]
    tasks = [
        Task(region=region, ticks=ticks, contender=who, trainer=trainer, seed=chosen.seed + number)
        for region in large
        for number, ticks in enumerate(spread_over(stretches(region), chosen.stretches))
        for who in CONTENDERS
        for trainer in _trainers(who)
    ]
    found: dict[tuple[str, str, str], list[Outcome]] = defaultdict(list)
    with ProcessPoolExecutor(chosen.processes) as pool:
        running = {pool.submit(task.play): task for task in tasks}
        for number, done in enumerate(as_completed(running), 1):
            task = running[done]
            key = task.region.name, task.contender.name, task.trainer.name
            found[key].append(done.result())
            print(f"{number} of {len(tasks)} played: {', '.join(key)}", file=sys.stderr)
    for region in large:
        out.print(_table(region, found))
    if left := [region.name for region in regions if region not in large]:
        out.print(f"fewer than {LEAST} instances at any time: {', '.join(left)}")


def _trainers(who: Contender) -> Sequence[Trainer]:
    """Return the trainers that a contender has: without a notice both lose the same."""
    return (READS,) if who is CONTENDERS[-1] else (READS, SAVES)


def _table(region: Region, found: dict[tuple[str, str, str], list[Outcome]]) -> Table:
    count = len(stretches(region))
    played = len(found[region.name, CONTENDERS[0].name, READS.name])
    shown = table(
        f"{region.name}: {sum(region.whole)} instances, {played} of {count} stretches",
        "who reacts: the trainer",
        "steps lost",
        "of a stretch",
        "no step",
        "told",
        "half killed",
        "replicas lost",
        "at zero",
        "killed",
        "on-demand",
    )
    shown.caption = CAPTION
    for who in CONTENDERS:
        for trainer in _trainers(who):
            of = found[region.name, who.name, trainer.name]
            lost = [each.lost for each in of] or [0]
            due = sum(each.due for each in of)
            shown.add_row(
                f"{who.name}: {trainer.name}",
                f"{sum(lost):,}",
                f"{median(lost):,.0f}, {min(lost):,}-{max(lost):,}",
                f"{sum(each.still for each in of):,}",
                f"{sum(each.told for each in of)} of {due}",
                f"{sum(each.half_killed for each in of)}",
                f"{sum(each.serving_lost for each in of):,.0f}",
                f"{sum(each.at_zero for each in of):,.0f} s",
                f"{sum(each.killed for each in of)}",
                f"{sum(each.on_demand_hours for each in of):.1f} h",
            )
    return shown


if __name__ == "__main__":
    main()
