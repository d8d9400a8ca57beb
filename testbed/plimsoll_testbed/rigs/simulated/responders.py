"""Who reacts to notices in a simulated drill. One line in the table makes another.

All see the same world through the same wire, so that their reports can be laid side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, override

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.domain.clusters import Cluster, ClusterKind, Mode
from plimsoll.services.drains import DrainService
from plimsoll.services.notices import NoticeService
from plimsoll.services.ownership import Ownership
from plimsoll.services.ports import Telemetry
from plimsoll.services.rehearsal import Rehearsal
from plimsoll.services.sweep import SweepService
from plimsoll_testbed.measure.measure import Measurement
from plimsoll_testbed.model.machines import Machine, region_of
from plimsoll_testbed.rigs import commondrain
from plimsoll_testbed.rigs.simulated.aws import SimulatedInstances, SimulatedNodeGroups
from plimsoll_testbed.rigs.simulated.stage import HollowStage
from plimsoll_testbed.rigs.simulated.stores import (
    SimulatedNodeIndex,
    SimulatedRegistry,
    SimulatedReports,
    SimulatedTicks,
)
from plimsoll_testbed.rigs.simulated.time import EPOCH, GreenletWorkers, VirtualClock
from plimsoll_testbed.rigs.simulated.transport import SimulatedTransport
from plimsoll_testbed.rigs.simulated.wire import Wire


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What a responder is given."""

    clock: VirtualClock
    stages: Mapping[str, HollowStage]
    wire: Wire
    """Its own way to clusters and AWS, which is counted."""
    telemetry: Telemetry
    ticks: Callable[[str, int], None]
    """Sends a tick for a cluster, in so many seconds."""


class Responder(Protocol):
    """The functions that a responder deploys."""

    def notices(self, bodies: Sequence[str]) -> Sequence[object]:
        """Handle a batch; an exception stands for a body that failed."""

    def slice(self, cluster: str, holder: str) -> object:
        """Handle a tick."""

    def sweep(self) -> object:
        """Look after everything, every minute."""

    def hand_in(self, measurement: Measurement) -> None:
        """Give in reports, when all is over."""


class Nobody:
    """Nobody reacts."""

    def __init__(self, _world: World) -> None:
        pass

    def notices(self, bodies: Sequence[str]) -> Sequence[object]:
        """Pass them over."""
        return [None] * len(bodies)

    def slice(self, cluster: str, holder: str) -> None:
        """Do nothing."""

    def sweep(self) -> None:
        """Do nothing."""

    def hand_in(self, measurement: Measurement) -> None:
        """Have nothing to report."""


class CommonDrain(Nobody):
    """What common handlers do: at a notice, cordon and evict everything at once, nothing else."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._world = world
        self._draining: set[str] = set()
        self._workers = GreenletWorkers(world.clock, parallel=10_000)

    @override
    def notices(self, bodies: Sequence[str]) -> Sequence[object]:
        """Start the drain of every instance that has its first notice."""
        for body in bodies:
            for instance in commondrain.noticed(body, self._world.clock.now()):
                self._start(instance)
        return super().notices(bodies)

    def _start(self, instance: str) -> None:
        for stage in self._world.stages.values():
            machine = stage.fleet.machine.get(instance)
            if machine is not None and instance not in self._draining:
                self._draining.add(instance)
                drain = partial(self._drain, stage, machine)
                self._world.clock.spawn(self._world.clock.now(), drain, f"drain {machine.node}")

    def _drain(self, stage: HollowStage, machine: Machine) -> None:
        drain = commondrain.CommonDrain(
            _transport(self._world, stage, "drain"),
            stage.name,
            self._world.clock,
            workers=self._workers,
        )
        drain.drain(machine.node, over=lambda: machine.gone is not None)


class Plimsoll:
    """The services that run in Lambda, unchanged, on the rig's side of their ports."""

    def __init__(self, world: World) -> None:
        clock, wire, telemetry = world.clock, world.wire, world.telemetry
        stages = world.stages
        workers = GreenletWorkers(clock)
        self._reports = SimulatedReports(wire)
        registry = SimulatedRegistry(wire, [_registered(stage) for stage in stages.values()])
        index = SimulatedNodeIndex(wire)
        instances = SimulatedInstances([stage.fleet for stage in stages.values()], wire)
        clusters = _Clusters(world, workers)
        ticks = SimulatedTicks(wire, world.ticks)
        node_groups = {
            name: SimulatedNodeGroups(stage.fleet, wire, clock) for name, stage in stages.items()
        }

        def groups(cluster: Cluster) -> SimulatedNodeGroups:
            return node_groups[cluster.name]

        self._notices = NoticeService(
            ownership=Ownership(
                registry=registry,
                index=index,
                instances=instances,
                clock=clock,
                telemetry=telemetry,
            ),
            clusters=clusters,
            rehearsal=Rehearsal(
                groups=groups, reports=self._reports, clock=clock, telemetry=telemetry
            ),
            reports=self._reports,
            ticks=ticks,
            clock=clock,
            workers=workers,
            telemetry=telemetry,
            drills=True,
        )
        self._drains = DrainService(
            registry=registry,
            clusters=clusters,
            groups=groups,
            instances=instances,
            reports=self._reports,
            clock=clock,
            workers=workers,
            telemetry=telemetry,
        )
        self._sweep = SweepService(
            registry=registry,
            index=index,
            instances=instances,
            clusters=clusters,
            reports=self._reports,
            notices=self._notices,
            ticks=ticks,
            clock=clock,
            workers=workers,
            telemetry=telemetry,
        )
        self._stages = stages

    def notices(self, bodies: Sequence[str]) -> Sequence[object]:
        """Run the function `notices`."""
        return self._notices.receive(bodies)

    def slice(self, cluster: str, holder: str) -> object:
        """Run the function `drains`."""
        return self._drains.slice(cluster, holder)

    def sweep(self) -> object:
        """Run the function `sweep`."""
        return self._sweep.run()

    def hand_in(self, measurement: Measurement) -> None:
        """Give in what stands in the store of reports."""
        for cluster in self._stages:
            for report in reversed(self._reports.stored.list(cluster, limit=100_000)):
                measurement.report(report.interruption, report.reasons)


RESPONDERS: Final[Mapping[str, Callable[[World], Responder]]] = {
    "plimsoll": Plimsoll,
    "drain": CommonDrain,
    "none": Nobody,
}


class _Clusters:
    """The port `Clusters`: one connection to each cluster, kept."""

    def __init__(self, world: World, workers: GreenletWorkers) -> None:
        self._open = {
            name: KubernetesCluster(
                _transport(world, stage, "plimsoll"), name, world.clock, workers=workers
            )
            for name, stage in world.stages.items()
        }

    def open(self, cluster: Cluster) -> KubernetesCluster:
        """Return the API of a cluster."""
        return self._open[cluster.name]


def _transport(world: World, stage: HollowStage, user: str) -> SimulatedTransport:
    return SimulatedTransport(
        cluster=stage.cluster,
        name=stage.name,
        user=user,
        wire=world.wire,
        clock=world.clock,
        lag=stage.lag,
    )


def _registered(stage: HollowStage) -> Cluster:
    return Cluster(
        name=stage.name,
        kind=ClusterKind.EKS,
        mode=Mode.ACT,
        region=region_of(stage.spec.node_groups[0].zones[0]),
        added=EPOCH,
    )
