"""What clusters of up to 150,000 pods cost each function: time, memory, and what is read.

    python -m benchmarks.large_cluster [--pods 5000 20000 50000 150000] [--going 0.04]

An API server (`server.py`) and one function (`function.py`) run beside each other. `sweep` is a full
resync, `placement` includes one; then a share of the nodes gets a spot notice, and `drains` has one
reconcile. No controller runs there, so no replacement appears and each released pod stays. *In lists* is
what was read against one list of everything: as it was sent, and unpacked. A list is sent compressed, an answer
to a patch and the event of it are not.
"""

from __future__ import annotations

import argparse
import json
import ssl
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Self, override
from urllib.request import urlopen

from benchmarks.large_cluster.objects import ON_NODE, LargeCluster
from benchmarks.output import machine
from tests.package.template import functions

FUNCTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "sweep": {},
    "placement": {},
    "notices": {"patch nodes": "cordon"},
    "drains": {"patch pods": "release", "create pods/eviction": "eviction"},
}
"""In the order in which they run: the requests that show that a function acts, and in which way."""
HEADINGS: Final = (
    "pods",
    "nodes",
    "function",
    "setting",
    "memory",
    "processor",
    "at its share",
    "first action",
    "ended",
    "read, compressed",
    "in lists",
)
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

    def asked(self) -> dict[str, Any]:
        """Return what was asked since the last time."""
        context = ssl.create_default_context(cadata=self.address["ca"])
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        with urlopen(self.address["url"], context=context) as answer:
            found: dict[str, Any] = json.load(answer)
        return found


def run(
    server: Server, function: str, going: dict[str, str], lists: dict[str, int]
) -> Sequence[str]:
    """Run a function and return the cells of its row.

    Args:
        server: the cluster.
        function: by its name.
        going: instances to interrupt, by node.
        lists: what one list of everything has, as `sweep` reads it, which sets it.
    """
    server.asked()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.large_cluster.function", function],
        input=json.dumps({**server.address, "going": going}),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    asked = server.asked()
    if done.returncode:
        return [f"`{function}`", f"failed: its process ended with {done.returncode}"]
    figures, counted = json.loads(done.stdout), asked["counted"]
    if function == "sweep":
        lists |= {key: counted[key] for key in ("bytes", "plain bytes")}
    requests = {k: v for k, v in counted.items() if " " in k and "bytes" not in k}
    print(f"  {function}: {json.dumps(requests)}", file=sys.stderr)
    acts = FUNCTIONS[function]
    first = {at: acts[request] for request, at in asked["first"].items() if request in acts}
    memory: int = functions()[f"{function.capitalize()}Function"]["Properties"]["MemorySize"]
    processor = figures["processor"]
    return [
        f"`{function}`",
        f"{memory:,} MB",
        f"{figures['peak'] / 1e6:,.0f} MB",
        f"{processor:.1f} s",
        f"{processor / min(1.0, memory / WHOLE_PROCESSOR):.1f} s",
        f"{first[min(first)]} after {min(first) - figures['began']:.1f} s" if first else "",
        f"{figures['ended'] - figures['began']:.1f} s {figures['failed']}".strip(),
        f"{counted.get('bytes', 0) / 1e6:,.0f} MB",
        ", unpacked ".join(f"{counted.get(key, 0) / size:.1f}" for key, size in lists.items()),
    ]


def main() -> None:
    """Print the table of docs/develop/performance.md, row by row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, nargs="+", default=[5_000, 20_000, 50_000, 150_000])
    parser.add_argument("--going", type=float, default=0.04, help="share of the nodes")
    parser.add_argument("--functions", nargs="+", default=list(FUNCTIONS))
    chosen = parser.parse_args()
    size = len(LargeCluster(ON_NODE).kinds["/api/v1/pods"].text(ON_NODE - 1))
    print(f"{machine()}; a pod has {size:,} bytes\n")
    _print(HEADINGS)
    _print(["---"] * len(HEADINGS))
    for pods in chosen.pods:
        cluster = LargeCluster(pods)
        going = cluster.spot(min(MOST_GOING, max(1, round(cluster.nodes * chosen.going))))
        size_of, lists = [f"{pods:,}", f"{cluster.nodes:,}"], dict[str, int]()
        with Server(pods) as server:
            for function in chosen.functions:
                _print([*size_of, *run(server, function, going, lists)])
                size_of = ["", ""]


def _print(cells: Sequence[str]) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
