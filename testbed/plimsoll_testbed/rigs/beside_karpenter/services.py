"""Plimsoll's services in this process."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache
from typing import Final

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.nodegroups.account import Account
from plimsoll.adapters.nodegroups.karpenter import NodePools
from plimsoll.adapters.nodegroups.kind import Access
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.domain.registry import Cluster, ClusterKind, Mode
from plimsoll.services.trusted_sources import TrustedSources
from plimsoll.services.wiring import Ports, Services, wire
from plimsoll_simulation.fake_aws.stores import (
    AmpleLimits,
    MemoryAnnouncer,
    MemoryLayouts,
    MemoryNodeIndex,
    MemoryPools,
    MemoryRegistry,
    MemoryReports,
    MemoryResyncs,
    MemoryTimes,
)
from plimsoll_testbed.rigs.beside_karpenter.instances import ZONE, AsInstances
from plimsoll_testbed.rigs.beside_karpenter.ports import (
    GrownByKarpenter,
    OneCluster,
    SilentAws,
    Words,
)
from plimsoll_testbed.rigs.controlplane import ControlPlane

CLUSTER: Final = "harbor"


class InProcessPlimsoll:
    """The services, with the queue of wake-ups as timers. No two reconciles work at the same time."""

    def __init__(self, plane: ControlPlane, say: Callable[[str], None]) -> None:
        self._exits = ExitStack()
        self._threads: list[threading.Thread] = []
        self._ended = threading.Event()
        self._holders = itertools.count()
        self.errors: list[Exception] = []
        self.index = MemoryNodeIndex()
        clock, ec2, words = SystemClock(), SilentAws(), Words(say)
        workers, cluster_workers = ThreadWorkers(), ThreadWorkers(2)
        self._exits.callback(workers.close)
        self._exits.callback(cluster_workers.close)
        way = AsInstances(plane.transport("plimsoll", connections=32))
        cluster = KubernetesCluster(way, CLUSTER, clock, workers=workers)
        access = Access(
            account=Account(Aws(ZONE[:-1]), clock),  # asked for the time only
            api=lambda: Requests(transport=way, cluster=CLUSTER),
            cluster=CLUSTER,
            warn=say,
        )
        groups = GrownByKarpenter(NodePools(access))
        registered = Cluster(
            name=CLUSTER,
            kind=ClusterKind.EKS,
            mode=Mode.ACT,
            region=ZONE[:-1],
            added=clock.now(),
        )
        self._services: Services = wire(
            Ports(
                registry=MemoryRegistry([registered]),
                index=self.index,
                instances=ec2,
                instances_of=lambda _: ec2,
                shifts_of=lambda _: ec2,
                clusters=OneCluster(cluster),
                groups=lambda _: groups,
                limits=lambda _: AmpleLimits(),
                reports=MemoryReports(),
                pools=MemoryPools(),
                times=MemoryTimes(),
                layouts=cache(MemoryLayouts),
                announcer=MemoryAnnouncer(),
                wake_ups=self,
                resyncs=MemoryResyncs(),
                clock=clock,
                workers=workers,
                cluster_workers=cluster_workers,
                telemetry=words,
            ),
            sources=TrustedSources(drills=True),
        )

    def notices(self, bodies: Sequence[str]) -> None:
        """Take events, as the function `notices` does."""
        self.errors += filter(None, self._services.notices.receive(bodies))

    def send(self, cluster: str, delays: Sequence[int], traceparent: str | None = None) -> None:  # noqa: ARG002 - nobody traces here
        """Be the port `WakeUps`."""
        for delay in delays:
            thread = threading.Thread(target=self._wake, args=(cluster, delay), daemon=True)
            self._threads.append(thread)
            thread.start()

    def end(self) -> None:
        """Wake no more, and let what is at work end."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self._exits.close()

    def _wake(self, cluster: str, delay: float) -> None:
        if self._ended.wait(delay):
            return
        try:
            self._services.drains.reconcile(cluster, f"holder-{next(self._holders)}")
        except Exception as error:  # noqa: BLE001 - whoever plays the run raises it
            self.errors.append(error)
