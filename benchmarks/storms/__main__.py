r"""What a storm does to a cluster: all spot nodes of a real control plane get their notice in the same second.

A watch in a process of its own measures until every node is empty and every pod is Ready again, or
one minute after the instances went. The time to the cordon is split at the start of the function
that handled the event, which its log tells. Beside Plimsoll stands a process with sixteen threads
that cordons everything and then evicts everything. Run it from the repository, after `make build`:

    .venv/bin/python -m benchmarks.storms --nodes 50 500 --rates rig default --runs 1 --rows rows.md

It appends a row of docs/develop/performance.md to a file as soon as somebody has been played, so that a run that
fails costs its own row only.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.output import machine
from benchmarks.storms.cluster import THREADS, EvictAll, Storm
from benchmarks.storms.outcome import Outcome
from benchmarks.storms.scenario import drain_drill
from benchmarks.storms.tables import PLIMSOLL, Runs, headings, line, tables
from benchmarks.storms.workers import SIZES
from plimsoll_testbed.rigs.controlplane.modules import NEWEST, Module

RATES = {"rig": "controllers at the rig's rates", "default": "controllers at their default rates"}
MANY = 200
"""From here on one run is the default: setting up takes minutes."""


def main() -> int:
    """Print the tables, and return 1 if a run is missing from them."""
    chosen = _read()
    on = machine("boto3", "kubernetes", "plimsoll")
    found, missing = list[Table](), 0
    for nodes, rates in product(chosen.nodes, chosen.rates):
        runs = chosen.runs or (1 if nodes >= MANY else 3)
        played = _played(chosen, nodes, rates, runs)
        found += tables(played)
        missing += len(played.of) * runs - played.count
    console = Console(width=180)
    console.print(f"{on}, {Module.of(NEWEST).label}, size {chosen.size}")
    for table in found:
        console.print(table)
    if missing:
        console.print(f"{missing} runs failed and are missing here: see standard error")
    return 1 if missing else 0


def _read() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.storms",
        description="How soon nodes are cordoned and emptied in a storm.",
    )
    parser.add_argument("--rig", choices=["cluster"], default="cluster")
    parser.add_argument("--nodes", type=int, nargs="+", default=[50])
    parser.add_argument("--runs", type=int, help=f"default 3; from {MANY} nodes on 1")
    parser.add_argument(
        "--size",
        choices=SIZES,
        default="usual",
        help="of the deployed stack, on the cluster rig: how many batches of notices and how "
        f"many wake-ups are handled at once, each by a process of about 100 MB ({', '.join(f'{n} {s}' for s, n in SIZES.items())})",
    )
    parser.add_argument(
        "--logs", type=Path, help="a folder in which the functions' log of each run is kept"
    )
    parser.add_argument(
        "--rates",
        choices=RATES,
        nargs="+",
        default=["rig"],
        help="of controller manager and scheduler; by default they are 20 and 50 requests a second",
    )
    parser.add_argument("--rows", type=Path, help="a file to which the results are appended")
    parser.add_argument("--only", action="append", help="of those who react, by a part of the name")
    return parser.parse_args()


def _played(chosen: argparse.Namespace, nodes: int, rates: str, runs: int) -> Runs:
    drill = drain_drill(nodes)
    logs: Path | None = chosen.logs
    if logs is not None:
        logs.mkdir(parents=True, exist_ok=True)

    def play(kind: type[Storm], number: int) -> Outcome:
        log = logs / f"{nodes}-{rates}-{number}.log" if logs and kind is Storm else None
        with kind(drill, size=chosen.size, default_rates=rates == "default") as run:
            return run.measure(log)

    reacts = {
        PLIMSOLL: partial(play, Storm),
        f"{THREADS} threads that evict all": partial(play, EvictAll),
    }
    chosen_ones = [
        name for name in reacts if not chosen.only or any(part in name for part in chosen.only)
    ]
    if not chosen_ones:
        sys.exit(f"--only names nobody; who could react: {', '.join(reacts)}")
    _keep(chosen.rows, *headings(nodes, RATES[rates]))
    of = {}
    for number, name in enumerate(chosen_ones, start=1):
        _tell(f"{nodes} nodes, {RATES[rates]}: {number} of {len(chosen_ones)} who react, {name}")
        of[name] = _each(name, runs, reacts[name])
        _keep(chosen.rows, line(name, of[name]))
    _keep(chosen.rows, "")
    return Runs(nodes=nodes, rates=RATES[rates], of=of)


def _keep(rows: Path | None, *lines: str) -> None:
    """Append lines to the file of rows, if there is one."""
    if rows is not None:
        with rows.open("a") as file:
            file.writelines(f"{each}\n" for each in lines)


def _each(what: str, runs: int, play: Callable[[int], Outcome]) -> list[Outcome]:
    outcomes = []
    for number in range(1, runs + 1):
        _tell(f"{what}, run {number} of {runs}, load {os.getloadavg()[0]:.2f}")
        began = time.monotonic()
        try:
            outcomes.append(play(number))
        except Exception:  # noqa: BLE001 - whatever it is, what the other runs measure is worth having
            _tell(f"{what}, run {number} of {runs} failed: {traceback.format_exc()}")
            continue
        _tell(
            f"{what}, run {number} of {runs} took {time.monotonic() - began:.0f} s: {outcomes[-1]}"
        )
        for complaint in outcomes[-1].complaints[:5]:
            _tell(f"  {complaint[:1000]}")
    return outcomes


def _tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
