"""What a month of calm resyncs reads from API servers: requests and bytes, and what a NAT gateway takes for them.

One resync of a hollow cluster is played and its answers are counted; nothing is going, so every
minute of the month is like it. Run it from the repository:

    .venv/bin/python -m benchmarks.resync_traffic
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from plimsoll.adapters.kubernetes import KubernetesCluster, Response, Transport
from plimsoll_testbed.model.hollow.transport import HollowTransport
from tests.package.monthly_cost import CLUSTERS, numbers
from tests.support.workload_sets import WiredServices, deployment

NODES: Final = 50
PODS_OF_A_NODE: Final = 10
PER_GB: Final = 0.045
"""USD for a GB through a NAT gateway in us-east-1, list price noted in November 2026."""
LEVEL: Final = 1
"""With which an API server compresses: https://github.com/kubernetes/kubernetes, responsewriters/writers.go"""
SMALLEST: Final = 128 * 1024
"""Smaller answers it leaves as they are."""


@dataclass(slots=True)
class Counting:
    """A transport that counts what is answered."""

    transport: Transport
    requests: int = 0
    plain: int = 0
    compressed: int = 0

    def call(self, method: str, path: str, **how: Any) -> Response:
        """Send a request, and count its answer."""
        answer = self.transport.call(method, path, **how)
        text = json.dumps(answer.body).encode()
        self.requests += 1
        self.plain += len(text)
        large = len(text) >= SMALLEST
        self.compressed += len(gzip.compress(text, LEVEL)) if large else len(text)
        return answer


def one_resync() -> Counting:
    """Play the resync of one calm cluster."""
    world = WiredServices()
    for number in range(NODES):
        world.join(f"node-{number:02}")
    for number in range(NODES):
        manifest = deployment(replicas=PODS_OF_A_NODE)
        manifest["metadata"]["name"] = f"web-{number:02}"
        world.apply(manifest, settle=0)
    world.sleep(120)
    counting = Counting(HollowTransport(world.hollow, world))
    world.api = KubernetesCluster(counting, "harbor", world, workers=world.workers)
    world.resync.run()
    return counting


def lines(counted: Counting, use: Mapping[str, float]) -> list[str]:
    """Return the table."""
    resyncs = use["hours in a month"] * 60
    found = [
        "| clusters | requests | GB plain | through NAT, USD | GB compressed | through NAT, USD |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for clusters in CLUSTERS:
        plain, small = (
            size * resyncs * clusters / 1e9 for size in (counted.plain, counted.compressed)
        )
        found.append(
            f"| {clusters} | {counted.requests * resyncs * clusters:,.0f} | {plain:,.0f} | "
            f"{plain * PER_GB:,.2f} | {small:,.0f} | {small * PER_GB:,.2f} |"
        )
    return found


if __name__ == "__main__":
    once = one_resync()
    print(f"one resync: {once.requests} requests, {once.plain:,} bytes, gzip {once.compressed:,}")
    print("\n".join(lines(once, numbers("use"))))
