"""One function of Plimsoll against a large cluster, in a process of its own, for its peak of memory.

The services are wired as on AWS, over the product's own adapter; stores and queues are in memory and
AWS knows of nothing. The clients of AWS are made, as in Lambda, for their share of the memory.

    python -m benchmarks.large_cluster.function notices|drains|sweep|placement <ORDER >FIGURES
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import batched
from pathlib import Path
from typing import Any, Final

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.clusters import OpenClusters
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.domain.registry import (
    RESYNC_EVERY,
    Cluster,
    ClusterKind,
    IndexEntry,
    Mode,
    ResyncRequest,
)
from plimsoll.services.wiring import Ports, Services, wire
from plimsoll_simulation.fake_aws import stores
from tests.support import workload_sets

MOST: Final = 10_240 << 20
"""Bytes: the most memory that Lambda gives a function."""
BATCH: Final = 10
"""Notices of one invocation, as in the template."""
NAME: Final = "large"


def wired(order: dict[str, Any]) -> tuple[Services, workload_sets.Telemetry]:
    """Return the services for the cluster of an order, its nodes in the index, and what they say."""
    clock, workers, aws = SystemClock(), ThreadWorkers(), Aws("us-east-1")
    now = clock.now()
    cluster = Cluster(
        name=NAME,
        kind=ClusterKind.ENDPOINT,
        mode=Mode.ACT,
        region="us-east-1",
        endpoint=order["url"],
        ca=order["ca"],
        added=now,
    )
    aws.make_ready("dynamodb", "sqs", "sts")
    index = stores.MemoryNodeIndex()
    index.put(
        [
            IndexEntry(instance=instance, cluster=NAME, node=node, seen=now)
            for node, instance in order["going"].items()
        ]
    )
    simulated, telemetry = workload_sets.Aws(), workload_sets.Telemetry()
    ports = Ports(
        registry=stores.MemoryRegistry([cluster]),
        index=index,
        instances=simulated,
        instances_of=lambda _: simulated,
        shifts_of=lambda _: simulated,
        clusters=OpenClusters(aws, clock, workers),
        groups=lambda _: simulated,
        limits=lambda _: stores.AmpleLimits(),
        reports=stores.MemoryReports(),
        pools=stores.MemoryPools(),
        times=stores.MemoryTimes(),
        layouts=cache(stores.MemoryLayouts),
        announcer=stores.MemoryAnnouncer(),
        wake_ups=stores.MemoryWakeUps(),
        resyncs=stores.MemoryResyncs(),
        clock=clock,
        workers=workers,
        cluster_workers=ThreadWorkers(8),
        telemetry=telemetry,
    )
    return wire(ports), telemetry


def interrupt(services: Services, instances: list[str]) -> None:
    """Let the notices of spot instances come in, batch after batch."""
    events = [
        {
            "version": "0",
            "id": f"interruption of {instance}",
            "detail-type": "EC2 Spot Instance Interruption Warning",
            "source": "aws.ec2",
            "account": "111122223333",
            "time": f"{SystemClock().now():%Y-%m-%dT%H:%M:%SZ}",
            "region": "us-east-1",
            "resources": [],
            "detail": {"instance-id": instance, "instance-action": "terminate"},
        }
        for instance in instances
    ]
    for batch in batched(events, BATCH, strict=False):
        for error in services.notices.receive([json.dumps(event) for event in batch]):
            if error is not None:
                raise error


def main() -> None:
    """Run the function once and print what it took and did."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST, MOST))
    order = json.load(sys.stdin)
    services, telemetry = wired(order)
    until = (SystemClock().now() + RESYNC_EVERY).isoformat()
    request = ResyncRequest(cluster=NAME, label=NAME, until=until)
    functions: dict[str, Callable[[], object]] = {
        "notices": lambda: interrupt(services, list(order["going"].values())),
        "drains": lambda: services.drains.reconcile(NAME, "benchmark"),
        "sweep": lambda: services.resync.run(request),
        "placement": services.placement.run,
    }
    run = functions[sys.argv[1]]
    used = time.process_time()
    try:
        run()
        failed = "; ".join(sorted(set(telemetry.warned)))
    except (Exception, MemoryError) as error:  # noqa: BLE001 - that it fails is a result
        failed = f"{type(error).__name__}: {error}"
    figures = {
        "processor": time.process_time() - used,
        "peak": _peak(),
        "acted": Counter(str(facts["action"]) for said, facts in telemetry.said if said == "acted"),
        "failed": failed,
    }
    print(json.dumps(figures), flush=True)


def _peak() -> int:
    """Return the most memory that was resident, in bytes: not the parent's, as `getrusage` would."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
