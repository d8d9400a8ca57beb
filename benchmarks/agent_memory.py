"""What the agent of a cluster takes: memory, processor, and bytes sent, in rounds of one snapshot each.

    python -m benchmarks.agent_memory [--pods 5000] [--rounds 10]

An API server of a large cluster runs beside it, and each round a share of its pods changes. Usage is not
served there. At the end the cluster is observed once, as before an instruction is carried out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, override

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes import KubernetesCluster, Response
from plimsoll.adapters.kubernetes.client import ClientTransport
from plimsoll.adapters.kubernetes.requests import MERGE_PATCH, Requests
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll_agent.cluster_reader import ClusterReader
from plimsoll_agent.output import Output
from plimsoll_agent.snapshot_sender import SnapshotSender
from plimsoll_agent.spool import Spool
from plimsoll_agent.wiring import THREADS
from plimsoll_service.wire.access import Accepted

CHANGED = 20
"""Pods that change in a round."""


class Versioned(ClientTransport):
    """Answers for the server what it does not: its version."""

    @override
    def call(self, method: str, path: str, **request: Any) -> Response:
        """Send a request and return its answer."""
        if path == "/version":
            return Response(status=200, body={"gitVersion": "v1.36.3"})
        return super().call(method, path, **request)


def agent(address: dict[str, str], rounds: int) -> None:
    transport, clock = Versioned(address["url"], ca=address["ca"]), SystemClock()
    workers = ThreadWorkers(THREADS)
    reader = ClusterReader(
        Requests(transport=transport, cluster="c"), workers, clock, lambda _: None
    )
    output = Output(clock)
    with tempfile.TemporaryDirectory() as folder:
        telling = SnapshotSender(
            cluster_id="c-1",
            follow=reader.follow,
            read=reader.read,
            push=accept,
            spool=Spool(Path(folder), 2**26),
            clock=clock,
            measures=output,
            warn=print,
        )
        for number in range(rounds):
            began, used = time.monotonic(), time.process_time()
            telling.take()
            size = telling.spool.size
            telling.send()
            say(f"snapshot {number + 1}", began, used, f"{size / 1e3:,.0f} kB")
            change(transport, number)
    began, used = time.monotonic(), time.process_time()
    seen = KubernetesCluster(transport, "c", clock, workers=workers).observe()
    say("observation for an instruction", began, used, f"{len(seen.pods):,} pods")


def accept(body: bytes) -> Accepted:
    return Accepted(accepted=len(body))


def change(transport: ClientTransport, number: int) -> None:
    listed = transport.call("GET", "/api/v1/pods", query={"limit": str(CHANGED)})
    for pod in listed.body["items"]:
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        body = {"metadata": {"annotations": {"plimsoll.dev/min-on-demand": str(number)}}}
        transport.call("PATCH", path, body=body, content_type=MERGE_PATCH)


def say(what: str, began: float, used: float, size: str) -> None:
    status = Path("/proc/self/status").read_text()
    kib = {line.split(":")[0]: line.split()[1] for line in status.splitlines() if "kB" in line}
    now, peak = (int(kib[name]) * 1024 / 1e6 for name in ("VmRSS", "VmHWM"))
    print(
        f"| {what} | {now:,.0f} MB | {peak:,.0f} MB | {time.process_time() - used:.1f} s | "
        f"{time.monotonic() - began:.1f} s | {size} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--agent", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.agent:
        agent(json.load(sys.stdin), chosen.rounds)
        return
    from benchmarks.large_cluster.__main__ import Server  # noqa: PLC0415 - not in the agent's memory

    print(f"{chosen.pods:,} pods, load {os.getloadavg()[0]:.1f} before\n")
    print("| | resident | most so far | processor | took | compressed |\n|---|---|---|---|---|---|")
    with Server(chosen.pods) as server:
        subprocess.run(
            [
                sys.executable,
                "-m",
                "benchmarks.agent_memory",
                "--agent",
                "--rounds",
                str(chosen.rounds),
            ],
            input=json.dumps(server.address),
            text=True,
            check=True,
        )


if __name__ == "__main__":
    main()
