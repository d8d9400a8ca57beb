"""How many snapshots a second the deployed service takes in, how fast it answers, and what it loses.

    .venv/bin/python -m benchmarks.ingest [--agents 1,2,4,8] [--seconds 300] [--every 1] [--pods 500]

Needs `make setup build`. So many agents of clusters of 500 pods push by the agent's own client, signed, over
HTTP to the stack on an emulated AWS: a full snapshot, and then what changed, which is the usage of all
pods and nodes. One a second is what sixty agents send. Emulator, functions and agents share this machine,
so figures are its figures; what they show is what grows with the agents, and that nothing is lost.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Final
from uuid import UUID

from msgspec.structs import replace

from benchmarks.instance_mix import a_cluster
from plimsoll.domain.errors import Temporary
from plimsoll_agent.service import Service
from plimsoll_service.domain.access import Role
from plimsoll_service.domain.snapshots import Span
from plimsoll_service.services.history import rollups
from plimsoll_service.wire.snapshot import (
    Container,
    ContainerUsage,
    LimitRanges,
    Snapshot,
    Usage,
    delta,
    encode,
)
from plimsoll_testbed.rigs.emulated.service import ServiceRig

MINUTE: Final = timedelta(minutes=1)
WORK_OFF_SECONDS: Final = 300.0
FULL_EVERY: Final = 60
"""Snapshots: an agent repeats a full one each hour."""


def a_cluster_as_told(pods: int, seed: int) -> Snapshot:
    """Return a cluster whose uids are as long, and compress as badly, as those of Kubernetes."""
    draw = Random(seed)
    seen = a_cluster(pods, seed, apart=True)
    old = [
        *(node.uid for node in seen.nodes),
        *(workload.uid for workload in seen.workloads),
        *(pod.uid for pod in seen.pods),
    ]
    uids = {uid: str(UUID(int=draw.getrandbits(128), version=4)) for uid in old}
    return replace(
        seen,
        nodes=tuple(replace(node, uid=uids[node.uid]) for node in seen.nodes),
        workloads=tuple(
            replace(
                w,
                uid=uids[w.uid],
                template=(Container(name="main", requests=w.requests, limits=w.limits),),
                limit_ranges=LimitRanges(),
            )
            for w in seen.workloads
        ),
        pods=tuple(
            replace(pod, uid=uids[pod.uid], owner=replace(pod.owner, uid=uids[pod.owner.uid]))
            if pod.owner
            else pod
            for pod in seen.pods
        ),
    )


def told(seen: Snapshot, cluster: str, start: datetime, seed: int) -> Iterator[bytes]:
    """Yield what an agent sends of a cluster in which usage changes, a minute for each."""
    draw = Random(seed)
    base, sequence = seen, 0
    used = [*(pod.uid for pod in seen.pods), *(node.uid for node in seen.nodes)]
    while True:
        sequence += 1
        usage = [_used(uid, draw) for uid in used]
        full = replace(
            seen,
            cluster_id=cluster,
            sequence=sequence,
            taken_at=start + sequence * MINUTE,
            usage=tuple(usage),
        )
        if sequence % FULL_EVERY == 1:
            base = full
            yield encode(full)
        else:
            yield encode(delta(base, full))


def _used(uid: str, draw: Random) -> Usage:
    """Return what a pod with one container used; that a node has one too costs little."""
    cpu, memory = draw.randrange(2000), draw.randrange(2**32)
    main = ContainerUsage(name="main", cpu_m=cpu, memory=memory)
    return Usage(uid=uid, cpu_m=cpu, memory=memory, containers=(main,))


@dataclass(slots=True)
class Agent:
    """One agent, and what it was answered."""

    tenant: str
    cluster: str
    service: Service
    start: datetime
    bodies: Iterator[bytes]
    seconds: list[float] = field(default_factory=list)
    """How long each answer took."""
    sizes: list[int] = field(default_factory=list)
    refused: int = 0

    def push(self, seconds: float, every: float) -> None:
        """Push one snapshot after another; one that is not taken is sent again."""
        began = time.perf_counter()
        for number, body in enumerate(self.bodies):
            time.sleep(max(0.0, began + number * every - time.perf_counter()))
            if time.perf_counter() - began >= seconds:
                return
            self._send(body)

    def _send(self, body: bytes) -> None:
        while True:
            asked = time.perf_counter()
            try:
                self.service.push(body)
            except Temporary as error:
                self.refused += 1
                time.sleep(error.retry_after or 1.0)
            else:
                self.seconds.append(time.perf_counter() - asked)
                self.sizes.append(len(body))
                return

    def lost(self, rig: ServiceRig) -> int:
        """Return how many that were acknowledged have no minute."""
        count = len(self.seconds)
        first, last = self.start + MINUTE, self.start + count * MINUTE
        found = rollups(rig.data(self.tenant), self.cluster, Span.MINUTE, first, last)
        return count - len(found)


def measure(rig: ServiceRig, number: int, seen: Snapshot, seconds: float, every: float) -> str:
    """Let so many agents push, wait until all is worked in, and return a row of the table."""
    start = rig.clock.now().replace(second=0, microsecond=0) - timedelta(hours=40)
    agents = []
    for n in range(number):
        tenant = f"tenant-{number}-{n}"
        cluster, service = rig.enrolled(tenant, "shop", Role.AGENT)
        agents.append(Agent(tenant, cluster, service, start, told(seen, cluster, start, n)))
    began = time.perf_counter()
    with ThreadPoolExecutor(number) as threads:
        for done in [threads.submit(agent.push, seconds, every) for agent in agents]:
            done.result()
    pushed = time.perf_counter()
    lost = sum(agent.lost(rig) for agent in agents)
    while lost and time.perf_counter() - pushed < WORK_OFF_SECONDS:
        time.sleep(1)
        lost = sum(agent.lost(rig) for agent in agents)
    behind = time.perf_counter() - pushed
    took = sorted(each for agent in agents for each in agent.seconds)
    size = statistics.mean(each for agent in agents for each in agent.sizes)
    p99 = took[min(len(took) - 1, int(len(took) * 0.99))]
    return (
        f"| {number} | {len(took)} | {len(took) / (pushed - began):.1f} | {statistics.median(took) * 1000:.0f} "
        f"| {p99 * 1000:.0f} | {sum(a.refused for a in agents)} | {behind:.0f} s | {lost} | {size / 1000:.1f} kB |"
    )


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--agents", default="1,2,4,8")
    options.add_argument("--seconds", type=float, default=300.0)
    options.add_argument("--every", type=float, default=1.0, help="seconds between snapshots")
    options.add_argument("--pods", type=int, default=500)
    chosen = options.parse_args()
    seen = a_cluster_as_told(chosen.pods, 1)
    print(
        "| agents | accepted | a second | median, ms | p99, ms | refused and sent again "
        "| the last one was worked in after | lost | mean size |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    with ServiceRig() as rig:
        for number in map(int, chosen.agents.split(",")):
            print(measure(rig, number, seen, chosen.seconds, chosen.every), flush=True)


if __name__ == "__main__":
    main()
