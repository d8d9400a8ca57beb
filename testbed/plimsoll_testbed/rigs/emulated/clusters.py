"""The clusters of a drill on an emulated AWS: fake ones behind HTTP, or whatever stands for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from typing import override

from plimsoll_simulation.fake_cluster.serve import FakeApiServer
from plimsoll_simulation.measure.measure import Measurement
from plimsoll_simulation.rigs.access import Access
from plimsoll_simulation.rigs.rig_cluster import RigCluster
from plimsoll_simulation.rigs.simulated.autoscaler import in_process
from plimsoll_simulation.rigs.simulated.rig_cluster import SimulatedRigCluster
from plimsoll_simulation.rigs.warmup import warm_up
from plimsoll_simulation.scenario.clusters import ClusterSpec
from plimsoll_simulation.scenario.drill import Drill
from plimsoll_testbed.rigs.emulated.walltime import WallTime


@dataclass(slots=True, kw_only=True)
class Clusters[C: RigCluster](ABC):
    """The clusters of one drill, wherever they stand."""

    drill: Drill
    seed: int
    """Of all that is drawn."""
    time: WallTime
    """Of the drill."""
    measurement: Measurement
    """What watches them."""
    exits: ExitStack
    """Stops what they start."""
    say: Callable[[str], None]
    """Told what a person may want to know."""
    rig_clusters: Mapping[str, C] = field(init=False)

    def __post_init__(self) -> None:
        self.rig_clusters = {spec.name: self._made(spec) for spec in self.drill.scenario.clusters}

    @abstractmethod
    def _made(self, spec: ClusterSpec) -> C:
        """Return a cluster; nothing is started yet."""

    @property
    def errors(self) -> Sequence[Exception]:
        """What ended one of their threads, if something did."""
        return ()

    @abstractmethod
    def make_ready(self) -> None:
        """Let every workload become Ready; from then on time goes by the wall.

        Raises:
            BadInput: a manifest is refused, or a cluster never becomes Ready.
            Refused: something does not start.
        """

    @abstractmethod
    def open(self, name: str, responder: str) -> Access:
        """Let a responder into a cluster, and return how it gets there."""

    @abstractmethod
    def begin(self) -> None:
        """Let the clusters' autoscalers work: it is time 0."""

    def count_calls(self, since: datetime) -> None:  # noqa: B027 - most tell of each call as it comes
        """Count the calls of the responder since then that were not counted when they came."""


class FakeClusters(Clusters[SimulatedRigCluster]):
    """Fake clusters: they live in the drill's time, and HTTP is only the way in."""

    @override
    def _made(self, spec: ClusterSpec) -> SimulatedRigCluster:
        return SimulatedRigCluster(
            spec,
            seed=self.seed,
            clock=self.time.clock,
            measurement=self.measurement,
            say=self.say,
        )

    @override
    def make_ready(self) -> None:
        """Let the clusters become Ready faster than the clock: nobody looks yet."""
        for name, rig_cluster in self.rig_clusters.items():
            rig_cluster.set_up(self.drill.objects[name])
        warm_up(self.time.clock, self.measurement.not_ready)
        self.exits.enter_context(self.time)

    @override
    def open(self, name: str, responder: str) -> Access:
        """Serve a cluster: here all may do all."""
        rig_cluster = self.rig_clusters[name]
        server = self.exits.enter_context(
            FakeApiServer(
                rig_cluster.cluster,
                lock=self.time.lock,
                now=self.time.catch_up,
                changed=lambda: self.time.clock.touch(rig_cluster.cluster),
                called=self.measurement.kubernetes_call,
            )
        )
        return Access(url=server.url, token=server.token)

    @override
    def begin(self) -> None:
        """Let the autoscalers scan, in the drill's time."""
        for rig_cluster in self.rig_clusters.values():
            if rig_cluster.spec.autoscaler is not None:
                clock = self.time.clock
                scaler = in_process(rig_cluster, clock, 0.0)
                clock.every(rig_cluster.spec.autoscaler.scan, scaler.scan, "autoscaler")
