"""The clusters of a drill as real control planes."""

from __future__ import annotations

import time as wall
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import Final

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll_testbed.measure.measure import Measurement
from plimsoll_testbed.rigs.access import Access
from plimsoll_testbed.rigs.checkout import Checkout
from plimsoll_testbed.rigs.cluster.installation import install
from plimsoll_testbed.rigs.cluster.rig_cluster import ControlPlaneRigCluster
from plimsoll_testbed.rigs.cluster.scans import Scans
from plimsoll_testbed.rigs.emulated.walltime import WallTime
from plimsoll_testbed.rigs.simulated.autoscaler import ClusterAutoscaler
from plimsoll_testbed.rigs.warmup import warm_up
from plimsoll_testbed.scenario.drill import Drill
from plimsoll_testbed.scenario.scenario import FaultEntry

TELL_SECONDS: Final = 10.0
"""Between two words about what is waited for."""


class ControlPlanes:
    """Real control planes: each has its own clock, and is watched."""

    def __init__(  # noqa: PLR0913 - what clusters are made of
        self,
        drill: Drill,
        *,
        seed: int,
        time: WallTime,
        measurement: Measurement,
        exits: ExitStack,
        say: Callable[[str], None],
    ) -> None:
        self._drill = drill
        self._time = time
        self._measurement = measurement
        self._exits = exits
        self._say = say
        self._scans: list[Scans] = []
        self._told = wall.monotonic()
        self.rig_clusters: Mapping[str, ControlPlaneRigCluster] = {
            spec.name: ControlPlaneRigCluster(
                spec, seed=seed, time=time, measurement=measurement, say=say
            )
            for spec in drill.scenario.clusters
        }

    @property
    def errors(self) -> Sequence[Exception]:
        """What ended one of their threads, if something did."""
        scans = [scans.error for scans in self._scans if scans.error is not None]
        return [
            *scans,
            *(error for rig_cluster in self.rig_clusters.values() for error in rig_cluster.errors),
        ]

    def make_ready(self) -> None:
        """Start the control planes, install what Plimsoll needs, and wait until all is Ready."""
        for name, rig_cluster in self.rig_clusters.items():
            with self._step(f"started a control plane for {name}"):
                self._exits.enter_context(rig_cluster.plane)
            self._exits.callback(rig_cluster.end)
            install(rig_cluster.plane.transport(), Checkout.find().root / "infra" / "cluster")
            if self._loses_api(name):
                takes = rig_cluster.rehearse_outage()
                self._say(f"restarted the API server of {name}: its start takes {takes:.1f} s")
        self._exits.enter_context(self._time)
        for name, rig_cluster in self.rig_clusters.items():
            rig_cluster.start()
            rig_cluster.set_up(self._drill.objects[name])
        warm_up(SystemClock(), self._lacking)

    def open(self, name: str, responder: str) -> Access:
        """Return the way of a responder, who is a user of that name."""
        plane = self.rig_clusters[name].plane
        return Access(url=plane.url, token=plane.token(responder), ca=plane.ca)

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

    @contextmanager
    def _step(self, done: str) -> Iterator[None]:
        began = wall.monotonic()
        yield
        self._say(f"{done} ({wall.monotonic() - began:.1f} s)")
