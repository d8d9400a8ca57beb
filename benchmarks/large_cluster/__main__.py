"""What clusters of up to 150,000 pods cost each function: time, memory, and what is read.

    python -m benchmarks.large_cluster [--pods 5000 20000 50000 150000] [--going 0.04]

An API server (`server.py`) and one function (`function.py`) run beside each other. `sweep` is a full
resync, `placement` includes one; then a share of the nodes gets a spot notice, and `drains` has one
reconcile. No controller runs there, so no replacement appears and each released pod stays.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import ssl
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Self, override
from urllib.request import urlopen

from rich.console import Console
from rich.table import Table

from benchmarks.large_cluster.objects import ON_NODE, LargeCluster

FUNCTIONS: Final = {
    "sweep": "",
    "placement": "",
    "notices": "patch nodes",
    "drains": "patch pods",
}
"""In the order in which they run, and the request that shows that a function acts."""


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

    def asked(self) -> dict[str, Any]:
        """Return what was asked since the last time."""
        context = ssl.create_default_context(cadata=self.address["ca"])
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        with urlopen(self.address["url"], context=context) as answer:
            found: dict[str, Any] = json.load(answer)
        return found


def run(server: Server, function: str, going: dict[str, str]) -> Sequence[str]:
    """Run a function and return the cells of its row."""
    before = server.asked()["counted"]["processor"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.large_cluster.function", function],
        input=json.dumps({**server.address, "going": going}),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    figures, asked = json.loads(done.stdout), server.asked()
    counted = asked["counted"]
    first = asked["first"].get(FUNCTIONS[function])
    requests = {k: v for k, v in counted.items() if " " in k and "bytes" not in k}
    print(f"  {function}: {json.dumps(requests)}", file=sys.stderr)
    return [
        function,
        "" if first is None else f"{first - figures['began']:.1f} s",
        f"{figures['ended'] - figures['began']:.1f} s",
        f"{figures['processor']:.1f} s",
        f"{counted['processor'] - before:.1f} s",
        f"{figures['peak'] / 1e6:,.0f} MB",
        f"{counted.get('plain bytes', 0) / 1e6:,.0f} MB",
        f"{counted.get('bytes', 0) / 1e6:,.0f} MB",
        f"{sum(requests.values()):,}",
        figures["failed"][:60],
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, nargs="+", default=[5_000, 20_000, 50_000, 150_000])
    parser.add_argument("--going", type=float, default=0.04, help="share of the nodes")
    parser.add_argument("--functions", nargs="+", default=list(FUNCTIONS))
    chosen = parser.parse_args()
    load = os.getloadavg()[0]
    headings = "pods function acts ended processor server's memory read sent requests failed"
    table = Table(*headings.split(), title="one invocation of each function")
    for pods in chosen.pods:
        cluster = LargeCluster(pods)
        going = cluster.spot(max(1, round(cluster.nodes * chosen.going)))
        with Server(pods) as server:
            for function in chosen.functions:
                table.add_row(f"{pods:,}", *run(server, function, going))
    size = len(LargeCluster(ON_NODE).kinds["/api/v1/pods"].text(ON_NODE - 1))
    table.caption = f"{chosen.going:.0%} of the nodes are interrupted; a pod has {size:,} bytes"
    console = Console(width=150)
    console.print(
        f"{platform.machine()}, {os.cpu_count()} cores, load {load:.1f} before; Python "
        f"{platform.python_version()}"
    )
    console.print(table)


if __name__ == "__main__":
    main()
