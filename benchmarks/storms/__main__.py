"""How soon nodes are cordoned and emptied when all get their notice in the same second.

Two rigs. On `emulated` the cluster is a hollow one and only cordoning is measured. On `cluster` it
is a real control plane, measured by a watch in a process of its own, until every node is empty or
its two minutes are over. The time to the cordon is split at the start of the function that handled
the event, which its log tells. Beside it stand bounds: a process with sixteen threads that does
nothing but cordon as many nodes, and on `cluster` another that then evicts all their pods. Run it
from the repository, after `make build`:

    .venv/bin/python -m benchmarks.storms [--nodes 50] [--runs 3]
    .venv/bin/python -m benchmarks.storms --rig cluster [--nodes 50] [--runs 3] [--size usual]
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

from benchmarks.storms import emulated
from benchmarks.storms.bounds import bound
from benchmarks.storms.cluster import storm
from benchmarks.storms.outcome import Outcome
from benchmarks.storms.scenario import drain_drill
from benchmarks.storms.tables import Runs, tables
from benchmarks.storms.workers import SIZES
from plimsoll.domain.errors import PlimsollError
from plimsoll_testbed.rigs.controlplane.modules import NEWEST, Module

MANY = 200
"""From here on one run is the default: setting up takes minutes."""


def main() -> int:
    """Print the tables, and return 1 if a run is missing from them."""
    chosen = _read()
    runs = chosen.runs or (1 if chosen.nodes >= MANY else 3)
    load = os.getloadavg()[0]
    if chosen.rig == "emulated":
        found, missing = [emulated.measure(chosen.nodes, runs)], 0
        server = f"uvicorn {version('uvicorn')}"
    else:
        played = _cluster(chosen, runs)
        found, missing = list(tables(played)), 3 * runs - played.count
        server = f"{Module.of(NEWEST).label}, size {chosen.size}"
    console = Console(width=150)
    console.print(
        f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, "
        f"load {load:.2f} before; Python {platform.python_version()}, boto3 {version('boto3')}, "
        f"kubernetes {version('kubernetes')}, {server}, plimsoll {version('plimsoll')}; {runs} runs"
    )
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
    parser.add_argument("--rig", choices=["emulated", "cluster"], default="emulated")
    parser.add_argument("--nodes", type=int, default=50)
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
    return parser.parse_args()


def _cluster(chosen: argparse.Namespace, runs: int) -> Runs:
    drill = drain_drill(chosen.nodes)
    logs: Path | None = chosen.logs
    if logs is not None:
        logs.mkdir(parents=True, exist_ok=True)

    def played(number: int) -> Outcome:
        log = None if logs is None else logs / f"run-{number}.log"
        return storm(drill, size=chosen.size, log=log)

    return Runs(
        nodes=chosen.nodes,
        plimsoll=_each("Plimsoll", runs, played),
        cordons=_each("only cordon", runs, lambda _: bound(drill, evict=False)),
        drains=_each("cordon and evict", runs, lambda _: bound(drill, evict=True)),
    )


def _each(what: str, runs: int, play: Callable[[int], Outcome]) -> list[Outcome]:
    outcomes = []
    for number in range(1, runs + 1):
        _tell(f"{what}, run {number} of {runs}, load {os.getloadavg()[0]:.2f}")
        began = time.monotonic()
        try:
            outcomes.append(play(number))
        except PlimsollError as error:  # what the other runs measured is worth having
            _tell(f"{what}, run {number} of {runs} failed: {error}")
            continue
        _tell(f"{what}, run {number} of {runs} took {time.monotonic() - began:.0f} s")
        for complaint in outcomes[-1].complaints[:5]:
            _tell(f"  {complaint[:1000]}")
    return outcomes


def _tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
