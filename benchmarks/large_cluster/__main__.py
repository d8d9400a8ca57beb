"""What clusters of up to 150,000 pods cost each function: processor time and memory.

    python -m benchmarks.large_cluster [--pods 5000 50000 150000] [--going 0.04]

An API server (`server.py`) and one function (`function.py`) run beside each other. `sweep` is a full
resync, `placement` includes one; then a share of the nodes gets a spot notice, and `drains` has one
reconcile. No controller runs there, so no replacement appears and each released pod stays.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Final, Self, override

from benchmarks.large_cluster.objects import ON_NODE, LargeCluster
from benchmarks.output import machine
from tests.package.template import functions

FUNCTIONS: Final = ("sweep", "placement", "notices", "drains")
"""In the order in which they run."""
HEADINGS: Final = ("pods", "nodes", "function", "setting", "memory", "processor", "at its share")
MOST_GOING: Final = 200
"""Interrupted nodes; else as large a share as is asked for."""
WHOLE_PROCESSOR: Final = 1769
"""Megabytes of a function that has a whole processor, in AWS's words a vCPU.
https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html"""


class Server(AbstractContextManager["Server"]):
    """The API server of a cluster of so many pods."""

    def __init__(self, pods: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.large_cluster.server", str(pods)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.address: dict[str, str] = json.loads(self._process.stdout.readline())

    @override
    def __enter__(self) -> Self:
        return self

    @override
    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def run(server: Server, function: str, going: dict[str, str]) -> Sequence[str]:
    """Run a function and return the cells of its row.

    Args:
        server: the cluster.
        function: by its name.
        going: instances to interrupt, by node.
    """
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.large_cluster.function", function],
        input=json.dumps({**server.address, "going": going}),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        return [f"`{function}`", f"failed: its process ended with {done.returncode}"]
    figures = json.loads(done.stdout)
    print(f"  {function}: {figures['acted']} {figures['failed']}", file=sys.stderr)
    memory: int = functions()[f"{function.capitalize()}Function"]["Properties"]["MemorySize"]
    processor = figures["processor"]
    return [
        f"`{function}`",
        f"{memory:,} MB",
        f"{figures['peak'] / 1e6:,.0f} MB",
        f"{processor:.1f} s",
        f"{processor / min(1.0, memory / WHOLE_PROCESSOR):.1f} s",
    ]


def main() -> None:
    """Print the table of docs/develop/performance.md, row by row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, nargs="+", default=[5_000, 50_000, 150_000])
    parser.add_argument("--going", type=float, default=0.04, help="share of the nodes")
    parser.add_argument("--functions", nargs="+", default=FUNCTIONS)
    chosen = parser.parse_args()
    size = len(LargeCluster(ON_NODE).kinds["/api/v1/pods"].text(ON_NODE - 1))
    print(f"{machine()}; a pod has {size:,} bytes\n")
    _print(HEADINGS)
    _print(["---"] * len(HEADINGS))
    for pods in chosen.pods:
        cluster = LargeCluster(pods)
        going = cluster.spot(min(MOST_GOING, max(1, round(cluster.nodes * chosen.going))))
        size_of = [f"{pods:,}", f"{cluster.nodes:,}"]
        with Server(pods) as server:
            for function in chosen.functions:
                _print([*size_of, *run(server, function, going)])
                size_of = ["", ""]


def _print(cells: Sequence[str]) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
