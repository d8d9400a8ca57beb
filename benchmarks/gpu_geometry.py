"""How far a plan of GPU geometry is from the optimum, and how far usual rules are.

    python -m benchmarks.gpu_geometry [--fleets N] [--trace FOLDER]

Fleets are random demands of an H100. The trace is openb of 2023 (Apache-2.0), of which the folder holds
`openb_pod_list_default.csv`:
https://github.com/hkust-adsl/kubernetes-scheduler-simulator/tree/main/data/csv
"""

from __future__ import annotations

import argparse
import csv
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Final

from rich.console import Console

from benchmarks.output import machine, table
from plimsoll_service.domain.gpu import (
    CARDS,
    Choice,
    Counts,
    GpuNode,
    cheapest_cards,
    geometries_of,
    plan_fleet,
    supply,
)
from plimsoll_service.domain.gpu.geometry import feasible, mig_geometries
from tests.support.exact_geometry import cheapest_mix, fewest_by_solver, most_kept_by_solver

CARD: Final = CARDS["H100-80GB-HBM3"]
PROFILES: Final = tuple(p for name, p in CARD.profiles.items() if name != "1g.20gb")
H100: Final = mig_geometries(PROFILES, CARD.memory)
FEASIBLE: Final = feasible(PROFILES, CARD.memory)
"""Geometries of 1g, 2g, 3g, 4g and 7g."""
SMS: Final = {
    "A100-SXM4-80GB": (14, 14, 28, 42, 56, 98),
    "H100-80GB-HBM3": (16, 26, 32, 60, 64, 132),
    "H200": (16, 26, 32, 60, 64, 132),
    "RTX-PRO-6000-Blackwell-Server-Edition": (46, 92, 188),
}
"""Streaming multiprocessors of each profile."""
PRICES: Final = {
    "A100-SXM4-80GB": 2.6,
    "H100-80GB-HBM3": 4.0,
    "H200": 4.6,
    "RTX-PRO-6000-Blackwell-Server-Edition": 2.2,
}
"""Dollars of a GPU-hour, as assumed here."""
SHARES: Final = (1, 2, 3, 4, 7)
"""Compute slices of the profiles."""

out: Final = Console(width=110)


def whole(demand: Counts) -> int:
    return sum(demand)


def all_one(demand: Counts) -> int:
    """Each GPU has one profile, as many as it holds: NVIDIA's `all-PROFILE`."""
    return demand[0] + sum(
        -(-number // max(g[place] for g in FEASIBLE)) for place, number in enumerate(demand[1:])
    )


def balanced(demand: Counts) -> int:
    """Each GPU is `all-balanced` (3g, 2g, two 1g), where small instances may take larger places."""
    _, d1, d2, d3, d4, d7 = demand
    return demand[0] + d7 + d4 + max(d3, -(-(d3 + d2) // 2), -(-(d3 + d2 + d1) // 4))


def first_fit_decreasing(demand: Counts) -> int:
    gpus: list[Counts] = []
    for place in reversed(range(len(PROFILES))):
        at = 0  # no GPU before it has room for this profile
        for _ in range(demand[place + 1]):
            while True:
                if at == len(gpus):
                    gpus.append((0,) * len(PROFILES))
                held = gpus[at]
                more = (*held[:place], held[place] + 1, *held[place + 1 :])
                if more in FEASIBLE:
                    gpus[at] = more
                    break
                at += 1
    return demand[0] + len(gpus)


def ours(demand: Counts) -> int:
    return H100.fewest(demand).total()


RULES: Final[Mapping[str, Callable[[Counts], int]]] = {
    "bound": H100.needed,
    "ours: a plan": ours,
    "first-fit decreasing": first_fit_decreasing,
    "all-PROFILE": all_one,
    "all-balanced": balanced,
    "whole GPUs": whole,
}


def random_counts(seed: int) -> Counts:
    draw = random.Random(seed)
    most = draw.choice([30, 100, 300, 1000])
    return (0, *(draw.randint(0, most) for _ in PROFILES))


def random_fleets(number: int) -> None:
    demands = [demand for seed in range(number) if any(demand := random_counts(seed))]
    best = [fewest_by_solver(H100, demand) for demand in demands]
    shown = table(
        f"{len(demands)} fleets of {min(best)} to {max(best)} GPUs, against HiGHS",
        "rule", "mean", "worst", "ms mean", "ms worst",
    )  # fmt: skip
    for name, rule in RULES.items():
        ratios, times = [], []
        for demand, optimum in zip(demands, best, strict=True):
            begin = time.process_time()
            ratios.append(rule(demand) / optimum)
            times.append(1000 * (time.process_time() - begin))
        shown.add_row(
            name,
            f"{mean(ratios):.3f}",
            f"{max(ratios):.3f}",
            f"{mean(times):.2f}",
            f"{max(times):.1f}",
        )
    out.print(shown)


def rebuilds(number: int, size: int) -> None:
    """Change each count of a fleet by up to a fifth, and count nodes that are not kept."""
    geometries = geometries_of(CARD)
    guided, unguided, best, nodes_, times = [], [], [], [], []
    for seed in range(number):
        draw = random.Random(seed)
        before = (0, *(draw.randint(0, 400) for _ in geometries.names[1:-1]), draw.randint(0, 40))
        after = (0, *(round(count * draw.uniform(0.8, 1.2)) for count in before[1:]))
        old = plan_fleet(geometries, before, [], per_node=size).nodes
        fresh = plan_fleet(geometries, after, [], per_node=size).nodes
        nodes = [GpuNode(name=f"old-{each.name}", layout=each.after or ()) for each in old]
        begin = time.process_time()
        plan = plan_fleet(geometries, after, nodes, per_node=size)
        times.append(1000 * (time.process_time() - begin))
        guided.append(sum(n.changed or n.before is None for n in plan.nodes))
        was, now = (Counter(each.after for each in given) for given in (old, fresh))
        unguided.append((now - was).total())
        kinds = list(Counter(supply(each.layout) for each in nodes).items())
        kept = most_kept_by_solver(geometries, after, kinds, plan.after, size)
        best.append(plan.after // size - kept)
        nodes_.append(len(nodes))
    shown = table(
        f"{number} fleets, {mean(nodes_):.0f} nodes of {size} on average, demand changes by up to 20 %",
        "plan", "nodes to change or add", "worst", "ms mean", "ms worst",
    )  # fmt: skip
    shown.add_row("fewest, by HiGHS", f"{mean(best):.1f}", str(max(best)), "", "")
    shown.add_row(
        "ours", f"{mean(guided):.1f}", str(max(guided)), f"{mean(times):.1f}", f"{max(times):.1f}"
    )
    shown.add_row("a new plan, matched", f"{mean(unguided):.1f}", str(max(unguided)), "", "")
    out.print(shown)


def mixed_fleets(number: int, classes: int) -> None:
    """Compare each class on its cheapest card with the optimum over all cards at once."""
    gaps, gpus = [], []
    for seed in range(number):
        draw = random.Random(seed)
        choices = [_choice(draw) for _ in range(classes)]
        demand = cheapest_cards(choices, CARDS, PRICES)
        counts = {
            model: geometries_of(CARDS[model]).needed(geometries_of(CARDS[model]).counts(wanted))
            for model, wanted in demand.items()
        }
        cost = sum(PRICES[model] * count for model, count in counts.items())
        gaps.append(cost / cheapest_mix(choices, PRICES, seconds=20) - 1)
        gpus.append(sum(counts.values()))
    shown = table(
        f"{number} mixed fleets: {classes} classes, 4 models, {min(gpus)} to {max(gpus)} GPUs",
        "each class on its cheapest card", "mean", "worst",
    )  # fmt: skip
    shown.add_row("cost above the lower bound of HiGHS", f"{mean(gaps):.1%}", f"{max(gaps):.1%}")
    out.print(shown)


def _choice(draw: random.Random) -> Choice:
    """Return a class that needs so much memory and so many multiprocessors."""
    mib, sms = draw.uniform(2000, 60000), draw.choice([8, 14, 16, 28, 40, 60])
    return Choice(
        pods=draw.randint(1, 40),
        slices={
            model: next(
                name
                for (name, profile), has in zip(
                    CARDS[model].profiles.items(), SMS[model], strict=True
                )
                if profile.usable_mib >= mib and has >= sms
            )
            for model in PRICES
        },
    )


type Task = tuple[int, int, int]
"""The place of its profile, and when it begins and ends, in seconds."""


def tasks(folder: Path) -> list[Task]:
    """Return the tasks that share one GPU; a share in thousandths takes the next larger profile."""
    with (folder / "openb_pod_list_default.csv").open(encoding="utf-8") as stream:
        rows = [
            row
            for row in csv.DictReader(stream)
            if row["num_gpu"] == "1" and int(row["gpu_milli"]) < 1000  # noqa: PLR2004 - a whole GPU
        ]
    return [
        (
            next(p for p, n in enumerate(SHARES) if 1000 * n >= 7 * int(row["gpu_milli"])),
            int(row["creation_time"]),
            int(row["deletion_time"]),
        )
        for row in rows
    ]


def running(found: Sequence[Task]) -> Iterator[tuple[int, Counts]]:
    """Yield for how many seconds which demand stands."""
    changes = sorted(
        [(begin, place, 1) for place, begin, end in found]
        + [(end, place, -1) for place, begin, end in found]
    )
    demand = [0] * (len(PROFILES) + 1)
    for (now, place, change), (then, _, _) in pairwise(changes):
        demand[place + 1] += change
        if then > now:
            yield then - now, tuple(demand)


def trace(folder: Path) -> None:
    found = tasks(folder)
    at_once = Counter(place + 1 for place, _, _ in found)
    demand = tuple(at_once[place] for place in range(len(PROFILES) + 1))
    spans = list(running(found))
    hours = {
        name: sum(seconds * rule(standing) for seconds, standing in spans) / 3600
        for name, rule in RULES.items()
    }
    most = max(sum(standing) for _, standing in spans)
    shown = table(
        f"openb: {len(found)} tasks; by their times at most {most} at once",
        "rule", "GPUs for all at once", "GPU-hours by their times", "of whole GPUs",
    )  # fmt: skip
    for name, rule in RULES.items():
        part = hours[name] / hours["whole GPUs"]
        shown.add_row(name, str(rule(demand)), f"{hours[name]:.0f}", f"{part:.3f}")
    out.print(shown)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--fleets", type=int, default=120)
    options.add_argument("--trace", type=Path, metavar="FOLDER")
    given = options.parse_args()
    out.print(machine("highspy"))
    random_fleets(given.fleets)
    rebuilds(max(1, given.fleets // 6), 1)
    rebuilds(max(1, given.fleets // 6), 8)
    mixed_fleets(max(1, given.fleets // 15), 40)
    if given.trace is not None:
        trace(given.trace)
