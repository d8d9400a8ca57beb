"""The cluster rig: the emulated rig's AWS, and real control planes for its clusters.

etcd, API server, scheduler and controllers are the real ones; nodes and kubelets are played, and
join and vanish with the fleet. Time is the wall's: what takes two minutes takes two minutes.
"""

from __future__ import annotations

import time as wall
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final, override

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.kubernetes.calls import OVERLAYS
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll_simulation.checkout import Checkout
from plimsoll_simulation.rigs.access import Access
from plimsoll_simulation.rigs.registry import Rig
from plimsoll_simulation.rigs.run import rig_of_runs, told
from plimsoll_simulation.rigs.simulated.autoscaler import ClusterAutoscaler
from plimsoll_simulation.rigs.threads import Threads
from plimsoll_simulation.rigs.warmup import warm_up
from plimsoll_simulation.scenario.clusters import ClusterSpec
from plimsoll_simulation.scenario.timeline import FaultEntry
from plimsoll_testbed.rigs.cluster.installation import install
from plimsoll_testbed.rigs.cluster.rig_cluster import ControlPlaneRigCluster
from plimsoll_testbed.rigs.emulated.clusters import Clusters
from plimsoll_testbed.rigs.emulated.rig import Emulation

TELL_SECONDS: Final = 10.0
"""Between two words about what is waited for."""


@dataclass(slots=True, kw_only=True)
class ControlPlanes(Clusters[ControlPlaneRigCluster]):
    """Real control planes: each has its own clock, and is watched."""

    _scans: Threads = field(init=False, default_factory=Threads)
    _told: float = field(init=False, default_factory=wall.monotonic)

    @override
    def _made(self, spec: ClusterSpec) -> ControlPlaneRigCluster:
        return ControlPlaneRigCluster(
            spec,
            seed=self.seed,
            time=self.time,
            measurement=self.measurement,
            say=self.say,
        )

    @property
    @override
    def errors(self) -> Sequence[Exception]:
        """What ended one of their threads, if something did."""
        scan = self._scans.error
        errors = [error for each in self.rig_clusters.values() for error in each.errors]
        return errors if scan is None else [scan, *errors]

    @override
    def make_ready(self) -> None:
        """Start the control planes, install what Plimsoll needs, and wait until all is Ready."""
        for name, rig_cluster in self.rig_clusters.items():
            with told(self.say, f"started a control plane for {name}"):
                self.exits.enter_context(rig_cluster.plane)
            self.exits.callback(rig_cluster.end)
            manifests = Checkout.find().root / "infra" / "cluster"
            for folder in (manifests, *(manifests / overlay for overlay in OVERLAYS)):
                install(rig_cluster.plane.transport(), folder)
            if self._loses_api(name):
                takes = rig_cluster.rehearse_outage()
                self.say(f"restarted the API server of {name}: its start takes {takes:.1f} s")
        self.exits.enter_context(self.time)
        for name, rig_cluster in self.rig_clusters.items():
            rig_cluster.start()
            with told(self.say, f"made the nodes and objects of {name}"):
                rig_cluster.set_up(self.drill.objects[name])
        warm_up(SystemClock(), self._lacking, while_it_goes_on=True)

    @override
    def open(self, name: str, responder: str) -> Access:
        """Return the way of a responder, who is a user of that name."""
        return self.rig_clusters[name].plane.access(responder)

    @override
    def begin(self) -> None:
        """Let the autoscalers scan beside everybody else: a scan takes time, and the drill's goes on."""
        self.exits.enter_context(self._scans)
        for rig_cluster in self.rig_clusters.values():
            if rig_cluster.spec.autoscaler is None:
                continue
            workers = ThreadWorkers()
            self.exits.callback(workers.close)
            api = KubernetesCluster(
                rig_cluster.plane.transport(), rig_cluster.name, SystemClock(), workers=workers
            )
            scaler = ClusterAutoscaler(rig_cluster, self.time.clock, api, self.time.lock)
            again = partial(self._scan, scaler, rig_cluster.spec.autoscaler.scan)
            self._scans.spawn(again, "cluster autoscaler")

    def _scan(self, scaler: ClusterAutoscaler, period: timedelta) -> None:
        while not self._scans.ended.is_set():
            scaler.scan()
            self._scans.ended.wait(period.total_seconds())

    @override
    def count_calls(self, since: datetime) -> None:
        """Count what the API servers' audit says of the responder."""
        for rig_cluster in self.rig_clusters.values():
            for method in rig_cluster.plane.calls(since).elements():
                self.measurement.kubernetes_call(method)

    def _loses_api(self, name: str) -> bool:
        return any(
            isinstance(entry, FaultEntry)
            and entry.fault == "api-server-down"
            and entry.cluster in {None, name}
            for entry in self.drill.scenario.timeline
        )

    def _lacking(self) -> Sequence[str]:
        for error in self.errors:
            raise error
        with self.time.lock:
            words = self.measurement.not_ready()
        now = wall.monotonic()
        if words and now - self._told >= TELL_SECONDS:
            self._told = now
            self.say(f"waiting until all is Ready: {'; '.join(words)}")
        return words


run: Rig = rig_of_runs(partial(Emulation, clusters=ControlPlanes, rig="cluster"))
