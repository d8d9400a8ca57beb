"""The load line: how long it takes, what its layouts cost and keep on traces of spot capacity, and how well it foretells.

Markets are drawn. Recordings of real spot capacity are no part of the repository: name their folder, which holds a folder
for each, and in it a JSON file for each pool, `<zone>_<type>.json`: {"metadata": {"gap_seconds": 300}, "data": [0, 1, ...]}.
Run it from the repository:

    .venv/bin/python -m benchmarks.load_line [--runs 20] [--traces FOLDER] [--gap NAME=SECONDS]
"""

from __future__ import annotations

import argparse
import sys
import time
from bisect import bisect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean, median

from rich.console import Console

from benchmarks.output import machine, table
from benchmarks.spot_traces import DAY, HOUR, Played, Recording, recordings
from plimsoll.domain.capacity import StartWindow
from plimsoll.domain.placement.load_line import (
    LossWindow,
    SpotGroup,
    Unit,
    lines,
    load_line,
    tail,
)
from plimsoll.domain.placement.promises import Promise
from plimsoll.domain.placement.spread_groups import Layout
from plimsoll_simulation.fake_aws.spot_market import MARKETS

SLOW = StartWindow(start_seconds=170, node_seconds=70, stop_seconds=10)
WINDOW = LossWindow.of(SLOW)
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


REPLICAS = 10
KEEP = (5, 6, 8, 9, 10)
WINDOWS = [
    LossWindow.of(StartWindow(start_seconds=start, node_seconds=node, stop_seconds=10))
    for start, node in ((30, 0), (20, 70), (170, 70))
]
"""From a pod whose replacement is Ready in time to one that is missing for minutes."""
NO_FLOOR, EVEN, THREE = Layout(0, 3), Layout(1, 3), Layout(3, 3)
BINS = (1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
LEARNED = 0.6
"""Of a trace the last two fifths are compared: until then rates are learned."""


def drawn(days: int = 60) -> Sequence[Recording]:
    """Return a trace of each market."""
    families, zones = ("c5", "m5", "r5"), ("us-east-1a", "us-east-1b", "us-east-1c")
    return [
        Recording(name, market.draw(1, days, families, zones), days)
        for name, market in MARKETS.items()
    ]


def fixed(recording: Recording, layout: Layout) -> Played:
    """Play one layout on a trace from its beginning to its end."""
    played = Played(recording.trace, REPLICAS, WINDOW, layout)
    played.play(int(recording.days * DAY))
    return played


def computed(recording: Recording, keep: int) -> Played:
    """Play the layouts that the product chooses of a promise, which it looks at every hour."""
    played = Played(recording.trace, REPLICAS, WINDOW, EVEN)
    promise, chosen = Promise(ready=keep), None
    for hour in range(int(24 * recording.days)):
        chosen = played.choose(promise, SLOW, chosen)
        played.play((hour + 1) * HOUR)
    return played


def promises(traces: Sequence[Recording]) -> Iterable[Sequence[str]]:
    """Yield what each rule costs and how often it breaks each promise, a row for each."""
    rules = {"no floor": NO_FLOOR, "even share": EVEN}
    played = {(name, one.name): fixed(one, rules[name]) for name in rules for one in traces}
    for keep in KEEP:
        for one in traces:
            played["computed", one.name] = computed(one, keep)
        for rule in (*rules, "computed"):
            figures = (played[rule, one.name] for one in traces)
            shown = (f"{p.cost():.3f} / {p.below(keep) / (p.seconds or 1):.3%}" for p in figures)
            yield [f"{keep / REPLICAS:.0%}", rule, *shown]


def calibration(traces: Sequence[Recording]) -> Sequence[tuple[float, float, int] | None]:
    """Return for each bin of predictions what was predicted, what came, and of how many days, windows and promises."""
    pairs: list[list[tuple[float, float]]] = [[] for _ in range(len(BINS) + 1)]
    for one in traces:
        for layout in (NO_FLOOR, EVEN, THREE):
            for window in WINDOWS:
                played = Played(one.trace, REPLICAS, window, layout)
                for day in range(int(one.days)):
                    said = played.day(KEEP)
                    if day >= LEARNED * one.days:
                        for keep, below in said.items():
                            came = played.below(keep, day * DAY, (day + 1) * DAY) / DAY
                            pairs[bisect(BINS, below)].append((below, came))
    return [
        (fmean(p for p, _ in each), fmean(c for _, c in each), len(each)) if each else None
        for each in pairs
    ]


def main() -> None:
    """Print how long it takes, and what was played."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--traces", type=Path, help="folder of recordings of spot capacity")
    parser.add_argument(
        "--gap",
        action="append",
        default=[],
        metavar="NAME=SECONDS",
        help="between two points of a recording whose files tell another number",
    )
    chosen = parser.parse_args()
    console, where = Console(width=160), machine()
    shown = table("the load line, medians", "replicas", "line", "units", "tail")
    for replicas, count in SIZES:
        line = _median(partial(layouts, replicas), chosen.runs)
        one = _median(partial(many_units, replicas, count), chosen.runs)
        shown.add_row(f"{replicas:,}", f"{line:.2f} ms", str(count), f"{one:.2f} ms")
    console.print(where)
    console.print(shown)
    _print_played(console, "drawn markets", drawn())
    if chosen.traces is None:
        console.print("no recordings are played: name their folder with --traces")
        return
    if not chosen.traces.is_dir():
        sys.exit(f"{chosen.traces} is no folder")
    gaps = {name: float(seconds) for name, _, seconds in (g.partition("=") for g in chosen.gap)}
    found = [*recordings(chosen.traces, gaps)]
    if not found:
        sys.exit(f"{chosen.traces} holds no recordings: it has a folder for each")
    _print_played(console, "recordings", found)


def _print_played(console: Console, title: str, traces: Sequence[Recording]) -> None:
    names = [one.name for one in traces]
    kept = table(f"{title}: cost / share of the time below", "keep", "rule", *names)
    for row in promises(traces):
        kept.add_row(*row)
    console.print(kept)
    told = table(f"{title}: calibration", "predicted", "mean", "came", "days")
    for low, high, found in zip((0.0, *BINS), (*BINS, 1.0), calibration(traces), strict=True):
        if found is not None:
            predicted, came, days = found
            told.add_row(f"{low:.4%} to {high:.4%}", f"{predicted:.4%}", f"{came:.4%}", f"{days:,}")
    console.print(told)


def _median(measured: Callable[[], None], runs: int) -> float:
    took = []
    for _ in range(runs):
        began = time.perf_counter()
        measured()
        took.append(1000 * (time.perf_counter() - began))
    return median(took)


if __name__ == "__main__":
    main()
