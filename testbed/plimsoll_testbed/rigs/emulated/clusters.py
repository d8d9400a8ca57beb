"""The clusters of a drill on an emulated AWS: hollow ones behind HTTP, or whatever stands for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import Protocol

from plimsoll_testbed.measure.measure import Measurement
from plimsoll_testbed.model.hollow.serve import HollowServer
from plimsoll_testbed.rigs.access import Access
from plimsoll_testbed.rigs.emulated.walltime import WallTime
from plimsoll_testbed.rigs.rig_cluster import RigCluster
from plimsoll_testbed.rigs.simulated.autoscaler import in_process
from plimsoll_testbed.rigs.simulated.rig_cluster import HollowRigCluster
from plimsoll_testbed.rigs.warmup import warm_up
from plimsoll_testbed.scenario.drill import Drill


class Clusters(Protocol):
    """The clusters of one drill, wherever they stand."""

    @property
    def rig_clusters(self) -> Mapping[str, RigCluster]:
        """Each cluster, by name."""

    @property
    def errors(self) -> Sequence[Exception]:
        """What ended one of their threads, if something did."""

    def make_ready(self) -> None:
        """Let every workload become Ready; from then on time goes by the wall.

        Raises:
            BadInput: a manifest is refused, or a cluster never becomes Ready.
            Refused: something does not start.
        """

    def open(self, name: str, responder: str) -> Access:
        """Let a responder into a cluster, and return how it gets there."""

    def begin(self) -> None:
        """Let the clusters' autoscalers work: it is time 0."""

    def count_calls(self, since: datetime) -> None:
        """Count the calls of the responder since then that were not counted when they came."""


class MakesClusters(Protocol):
    """Makes the clusters of a drill."""

    def __call__(  # noqa: PLR0913 - what clusters are made of
        self,
        drill: Drill,
        *,
        seed: int,
        time: WallTime,
        measurement: Measurement,
        exits: ExitStack,
        say: Callable[[str], None],
    ) -> Clusters:
        """Return clusters; what they start is stopped by `exits`."""


class HollowClusters:
    """Hollow clusters: they live in the drill's time, and HTTP is only the way in."""

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
        self.rig_clusters: Mapping[str, HollowRigCluster] = {
            spec.name: HollowRigCluster(
                spec, seed=seed, clock=time.clock, measurement=measurement, say=say
            )
            for spec in drill.scenario.clusters
        }
        self.errors: Sequence[Exception] = ()

    def make_ready(self) -> None:
        """Let the clusters become Ready faster than the clock: nobody looks yet."""
        for name, rig_cluster in self.rig_clusters.items():
            rig_cluster.set_up(self._drill.objects[name])
        warm_up(self._time.clock, self._measurement.not_ready)
        self._exits.enter_context(self._time)

    def open(self, name: str, responder: str) -> Access:  # noqa: ARG002 - here all may do all
        """Serve a cluster."""
        rig_cluster = self.rig_clusters[name]
        server = self._exits.enter_context(
            HollowServer(
                rig_cluster.cluster,
                lock=self._time.lock,
                now=self._time.catch_up,
                changed=lambda: self._time.clock.touch(rig_cluster.cluster),
                called=self._measurement.kubernetes_call,
            )
        )
        return Access(url=server.url, token=server.token)

    def begin(self) -> None:
        """Let the autoscalers scan, in the drill's time."""
        for rig_cluster in self.rig_clusters.values():
            if rig_cluster.spec.autoscaler is not None:
                clock = self._time.clock
                scaler = in_process(rig_cluster, clock, 0.0)
                clock.every(rig_cluster.spec.autoscaler.scan, scaler.scan, "autoscaler")

    def count_calls(self, since: datetime) -> None:
        """Nothing is left to count: the servers tell of each call as it comes."""
