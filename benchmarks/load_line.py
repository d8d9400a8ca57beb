"""How long the load line of a workload takes: all layouts, and the tail alone with many units.

Run it from the repository:

    .venv/bin/python -m benchmarks.load_line [--runs 20]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from statistics import median

from rich.console import Console

from benchmarks.output import machine, table
from plimsoll.domain.capacity import StartWindow
from plimsoll.domain.placement.load_line import (
    LossWindow,
    SpotGroup,
    Unit,
    lines,
    load_line,
    tail,
)

WINDOW = LossWindow.of(StartWindow(start_seconds=170, node_seconds=70, stop_seconds=10))
SIZES = ((10, 10), (30, 12), (100, 40), (500, 40), (2_000, 40))
"""Replicas, and units of the tail alone."""
KEPT, BROKEN = 0.6, 0.001


def layouts(replicas: int) -> None:
    """Compute the line of one workload."""
    spot = [
        SpotGroup(name=name, family=name, per_hour=rate)
        for name, rate in (("c6i", 0.006), ("m6i", 0.025), ("r6i", 0.082))
    ]
    load_line([*lines(replicas, int(KEPT * replicas), spot, WINDOW)], 0, BROKEN)


def many_units(replicas: int, count: int) -> None:
    """Compute one tail over many units."""
    units = [Unit(pods=-(-replicas // count), per_hour=0.01 + n / 1000) for n in range(count)]
    tail(units, WINDOW, replicas - int(KEPT * replicas))


def main() -> None:
    """Print the median of several runs for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    console, where = Console(), machine()
    shown = table("the load line, medians", "replicas", "line", "units", "tail")
    for replicas, count in SIZES:
        line = _median(partial(layouts, replicas), runs)
        one = _median(partial(many_units, replicas, count), runs)
        shown.add_row(f"{replicas:,}", f"{line:.2f} ms", str(count), f"{one:.2f} ms")
    console.print(where)
    console.print(shown)


def _median(measured: Callable[[], None], runs: int) -> float:
    took = []
    for _ in range(runs):
        began = time.perf_counter()
        measured()
        took.append(1000 * (time.perf_counter() - began))
    return median(took)


if __name__ == "__main__":
    main()
