"""Founding cases: gangs of six on places for ten, twelve and fourteen, on a real control plane.

    python -m benchmarks.gangs [--repetitions 5] [--window 60] [--together 15] [--arms scheduler queues leases] [--csv FILE]

kube-scheduler alone, the planner of the queues before it, and the planner that leases nodes of one place each to
gangs. Each case has nodes, a namespace and a queue of its own, and so many are played side by side.
"""

from __future__ import annotations

import argparse
import csv
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import batched, product
from pathlib import Path

from rich.console import Console

from benchmarks.output import machine, table
from plimsoll_testbed.model.hollow.settings import Settings
from plimsoll_testbed.rigs.controlplane.plane import ControlPlane
from plimsoll_testbed.rigs.gangs.cases import Arrival, Case
from plimsoll_testbed.rigs.gangs.play import Progress, Silent, play

SIZES = ((10, 1), (10, 2), (10, 5), (12, 5), (14, 5))
"""Places and jobs."""
ARMS = ("scheduler", "queues", "leases")
RUNS_SECONDS = 5.0
TIMES = Settings(pod_startup=timedelta(seconds=1), pod_stop=timedelta(seconds=1))

type Row = tuple[str, int, int, Arrival]


def cases(arm: str, repetitions: int) -> list[Case]:
    return [
        Case(
            name=f"{arm}-{slots}-{jobs}-{number}-{turn}",
            slots=slots,
            jobs=jobs,
            arrival=arrival,
            queued=arm != "scheduler",
            leases=arm == "leases",
            seed=turn,
        )
        for turn in range(repetitions)
        for (slots, jobs), (number, arrival) in product(SIZES, enumerate(Arrival))
    ]


def middle(figures: Sequence[float], form: str = "{:.0f}") -> str:
    low, high = min(figures), max(figures)
    median = form.format(statistics.median(figures))
    if low == high:
        return median
    return f"{median} ({form.format(low)}-{form.format(high)})"


def write(file: Path, found: Mapping[Row, Sequence[Progress]]) -> None:
    """Write what is there so far: a benchmark that is stopped keeps it."""
    with file.open("w", newline="", encoding="utf-8") as out:
        lines = csv.writer(out)
        lines.writerow(["arm", "places", "jobs", "arrival", "completed", "makespan", "wasted"])
        for (arm, slots, jobs, arrival), runs in found.items():
            lines.writerows(
                [arm, slots, jobs, arrival.value, len(e.done), e.makespan, round(e.wasted, 1)]
                for e in runs
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=ARMS)
    parser.add_argument("--window", type=float, default=60)
    parser.add_argument("--together", type=int, default=15)
    parser.add_argument("--csv", type=Path)
    given = parser.parse_args()
    print(machine())
    heard = Silent()
    found: dict[Row, list[Progress]] = defaultdict(list)
    for arm in given.arms:
        for some in batched(cases(arm, given.repetitions), given.together, strict=False):
            with ControlPlane(settings=TIMES) as plane:
                done = play(
                    plane,
                    some,
                    window=given.window,
                    runs=RUNS_SECONDS,
                    telemetry=heard,
                )
            for each in done:
                case = each.case
                found[arm, case.slots, case.jobs, case.arrival].append(each)
            if given.csv is not None:
                write(given.csv, found)
    shown = table(
        f"{given.repetitions} repetitions, jobs run {RUNS_SECONDS:.0f} s, window {given.window:.0f} s",
        "",
        "places",
        "jobs",
        "arrival",
        "completed",
        "makespan s",
        "place-seconds held by incomplete gangs",
    )
    for (arm, slots, jobs, arrival), runs in found.items():
        spans = [each.makespan for each in runs if each.makespan is not None]
        span = (
            middle(spans, "{:.1f}") if len(spans) == len(runs) else f"{len(spans)} of {len(runs)}"
        )
        shown.add_row(
            arm,
            str(slots),
            str(jobs),
            arrival.value,
            middle([len(each.done) for each in runs]),
            span,
            middle([each.wasted for each in runs]),
        )
    Console(width=140).print(shown)
    for warning in dict.fromkeys(heard.warnings):
        print(warning)


if __name__ == "__main__":
    main()
