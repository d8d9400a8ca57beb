"""The clusters of a drill as real control planes."""

from __future__ import annotations

import time as wall
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, override

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.kubernetes.calls import OVERLAYS
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll_testbed.rigs.access import Access
from plimsoll_testbed.rigs.checkout import Checkout
from plimsoll_testbed.rigs.cluster.installation import install
from plimsoll_testbed.rigs.cluster.rig_cluster import ControlPlaneRigCluster
from plimsoll_testbed.rigs.cluster.scans import Scans
from plimsoll_testbed.rigs.emulated.clusters import Clusters
from plimsoll_testbed.rigs.run import told
from plimsoll_testbed.rigs.simulated.autoscaler import ClusterAutoscaler
from plimsoll_testbed.rigs.warmup import warm_up
from plimsoll_testbed.scenario.drill import Drill
from plimsoll_testbed.scenario.scenario import ClusterSpec, FaultEntry

TELL_SECONDS: Final = 10.0
"""Between two words about what is waited for."""


class ControlPlanes(Clusters[ControlPlaneRigCluster]):
    """Real control planes: each has its own clock, and is watched."""

    def __init__(self, drill: Drill, **parts: Any) -> None:
        super().__init__(drill, **parts)
        self._scans: list[Scans] = []
        self._told = wall.monotonic()

    @override
    def _made(self, spec: ClusterSpec) -> ControlPlaneRigCluster:
        return ControlPlaneRigCluster(
            spec,
            seed=self._seed,
            time=self._time,
            measurement=self._measurement,
            say=self._say,
        )

    @property
    @override
    def errors(self) -> Sequence[Exception]:
        """What ended one of their threads, if something did."""
        scans = [scans.error for scans in self._scans if scans.error is not None]
        return [
            *scans,
            *(error for rig_cluster in self.rig_clusters.values() for error in rig_cluster.errors),
        ]

    @override
    def make_ready(self) -> None:
        """Start the control planes, install what Plimsoll needs, and wait until all is Ready."""
        for name, rig_cluster in self.rig_clusters.items():
            with told(self._say, f"started a control plane for {name}"):
                self._exits.enter_context(rig_cluster.plane)
            self._exits.callback(rig_cluster.end)
            manifests = Checkout.find().root / "infra" / "cluster"
            for folder in (manifests, *(manifests / overlay for overlay in OVERLAYS)):
                install(rig_cluster.plane.transport(), folder)
            if self._loses_api(name):
                takes = rig_cluster.rehearse_outage()
                self._say(f"restarted the API server of {name}: its start takes {takes:.1f} s")
        self._exits.enter_context(self._time)
        for name, rig_cluster in self.rig_clusters.items():
            rig_cluster.start()
            rig_cluster.set_up(self._drill.objects[name])
        warm_up(SystemClock(), self._lacking)

    @override
    def open(self, name: str, responder: str) -> Access:
        """Return the way of a responder, who is a user of that name."""
        return self.rig_clusters[name].plane.access(responder)

    @override
    def begin(self) -> None:
        """Let the autoscalers scan."""
        for rig_cluster in self.rig_clusters.values():
            if rig_cluster.spec.autoscaler is None:
                continue
            workers = ThreadWorkers()
            self._exits.callback(workers.close)
            api = KubernetesCluster(
                rig_cluster.plane.transport(), rig_cluster.name, SystemClock(), workers=workers
            )
            scans = Scans(
                ClusterAutoscaler(rig_cluster, self._time.clock, api),
                rig_cluster.spec.autoscaler.scan,
                self._time,
            )
            self._scans.append(scans)
            self._exits.callback(scans.end)
            scans.start()

    @override
    def count_calls(self, since: datetime) -> None:
        """Count what the API servers' audit says of the responder."""
        for rig_cluster in self.rig_clusters.values():
            for method in rig_cluster.plane.calls(since).elements():
                self._measurement.kubernetes_call(method)

    def _loses_api(self, name: str) -> bool:
        return any(
            isinstance(entry, FaultEntry)
            and entry.fault == "api-server-down"
            and entry.cluster in {None, name}
            for entry in self._drill.scenario.timeline
        )

    def _lacking(self) -> Sequence[str]:
        for error in self.errors:
            raise error
        with self._time.lock:
            words = self._measurement.not_ready()
        now = wall.monotonic()
        if words and now - self._told >= TELL_SECONDS:
            self._told = now
            self._say(f"waiting until all is Ready: {'; '.join(words)}")
        return words
