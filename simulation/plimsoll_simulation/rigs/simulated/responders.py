"""Who reacts to notices in a simulated drill. One line in the table makes another.

All see the same clusters through the same wire, so that their reports can be laid side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, override

from plimsoll.adapters.cached_registry import CachedRegistry
from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.domain.drain import MOST_REPORTS
from plimsoll.domain.interruptions import Policy
from plimsoll.domain.kubernetes import Ref
from plimsoll.domain.notices import ZonalShift
from plimsoll.domain.observation import Sample, Samples, WorkloadTimes
from plimsoll.domain.registry import Cluster, ClusterKind, Mode, ResyncRequest
from plimsoll.domain.reports import Report
from plimsoll.services.ports import FrameSink, Telemetry
from plimsoll.services.trusted_sources import TrustedSources
from plimsoll.services.wiring import Ports, wire
from plimsoll_simulation.fake_aws.machines import region_of
from plimsoll_simulation.fake_aws.stores import (
    AmpleLimits,
    MemoryAnnouncer,
    MemoryLayouts,
    MemoryNodeIndex,
    MemoryPools,
    MemoryRegistry,
    MemoryReports,
    MemoryTimes,
)
from plimsoll_simulation.measure.measure import Measurement
from plimsoll_simulation.rigs import commondrain
from plimsoll_simulation.rigs.simulated.aws import (
    SimulatedInstances,
    SimulatedNodeGroups,
    SimulatedZonalShifts,
)
from plimsoll_simulation.rigs.simulated.network import SimulatedNetwork
from plimsoll_simulation.rigs.simulated.rig_cluster import SimulatedRigCluster
from plimsoll_simulation.rigs.simulated.stores import (
    LAYOUTS,
    NODE_INDEX,
    POOLS,
    REGISTRY,
    REPORTS,
    TIMES,
    SimulatedResyncs,
    SimulatedWakeUps,
    behind,
)
from plimsoll_simulation.rigs.simulated.time import EPOCH, GreenletWorkers, VirtualClock
from plimsoll_simulation.rigs.simulated.transport import SimulatedTransport
from plimsoll_simulation.scenario.clusters import SeenTime


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponderContext:
    """What a responder is given."""

    clock: VirtualClock
    rig_clusters: Mapping[str, SimulatedRigCluster]
    wire: SimulatedNetwork
    """Its own way to clusters and AWS, which is counted."""
    shifts: Callable[[], Sequence[ZonalShift]]
    """Which zonal shifts stand, by ARC."""
    telemetry: Telemetry
    wake_ups: Callable[[str, int], None]
    """Sends a wake-up for a cluster, in so many seconds."""
    resyncs: Callable[[str], None]
    """Sends a message that asks for a resync."""
    frames: FrameSink | None = None
    """Takes the frames of storms; None: nobody watches."""


class Responder:
    """The functions that a responder deploys. As they stand here nobody reacts."""

    def __init__(self, context: ResponderContext) -> None:
        self._context = context

    def notices(self, bodies: Sequence[str]) -> Sequence[object]:
        """Handle a batch; an exception stands for a body that failed."""
        return [None] * len(bodies)

    def reconcile(self, cluster: str, holder: str) -> object:
        """Handle a wake-up."""

    def schedule(self) -> None:
        """Ask for a look at every cluster, every minute."""

    def resync(self, message: str) -> object:
        """Look after what a message asks for."""

    def place(self) -> object:
        """Look after on-demand floors, every five minutes."""

    def hand_in(self, measurement: Measurement) -> None:
        """Give in reports, when all is over."""

    def reports(self, cluster: str) -> Sequence[Report]:  # noqa: ARG002 - of none
        """Return the newest reports of a cluster."""
        return ()

    def times(self, cluster: str, workloads: Collection[Ref]) -> Mapping[Ref, WorkloadTimes]:  # noqa: ARG002 - of none
        """Return how long pods of these workloads were seen to take to stop and to start."""
        return {}


class CommonDrain(Responder):
    """What common handlers do: at a notice, cordon and evict everything at once, nothing else."""

    def __init__(self, context: ResponderContext) -> None:
        super().__init__(context)
        clock = context.clock
        self._drain = commondrain.CommonDrain(
            rig_clusters=context.rig_clusters,
            transports={
                name: SimulatedTransport(rig_cluster, clock, context.wire, "drain")
                for name, rig_cluster in context.rig_clusters.items()
            },
            clock=clock,
            workers=GreenletWorkers(clock, parallel=10_000),
            spawn=lambda drain, name: clock.spawn(clock.now(), drain, name),
        )

    @override
    def notices(self, bodies: Sequence[str]) -> Sequence[object]:
        """Start the drain of every instance that has its first notice."""
        for body in bodies:
            self._drain.notice(body)
        return super().notices(bodies)


class Plimsoll(Responder):
    """The services that run in Lambda, unchanged, on the rig's side of their ports."""

    def __init__(self, context: ResponderContext) -> None:
        super().__init__(context)
        clock, network, rig_clusters = context.clock, context.wire, context.rig_clusters
        workers = GreenletWorkers(clock)
        layouts = behind(network, MemoryLayouts(), LAYOUTS)
        self._reports = MemoryReports()
        self._times = _remembered(rig_clusters.values())
        self.announcer = MemoryAnnouncer()
        """What people would have been told."""
        registered = MemoryRegistry([_registered(each) for each in rig_clusters.values()])
        node_groups = {
            name: SimulatedNodeGroups(rig_cluster.fleet, network, clock)
            for name, rig_cluster in rig_clusters.items()
        }
        instances = SimulatedInstances(
            [rig_cluster.fleet for rig_cluster in rig_clusters.values()], network
        )
        self._services = wire(
            Ports(
                registry=CachedRegistry(behind(network, registered, REGISTRY), context.telemetry),
                index=behind(network, MemoryNodeIndex(), NODE_INDEX),
                instances=instances,
                instances_of=lambda _: instances,
                shifts_of=lambda _: SimulatedZonalShifts(context.shifts, network),
                clusters=_Clusters(context, workers),
                groups=lambda cluster: node_groups[cluster.name],
                limits=lambda _: AmpleLimits(),
                reports=behind(network, self._reports, REPORTS),
                pools=behind(network, MemoryPools(), POOLS),
                times=behind(network, self._times, TIMES),
                layouts=lambda: layouts,
                announcer=self.announcer,
                frames=None if (sink := context.frames) is None else lambda: sink,
                wake_ups=SimulatedWakeUps(network, context.wake_ups),
                resyncs=SimulatedResyncs(network, context.resyncs),
                clock=clock,
                workers=workers,
                cluster_workers=workers,
                telemetry=context.telemetry,
            ),
            sources=TrustedSources(drills=True),
        )

    @override
    def notices(self, bodies: Sequence[str]) -> Sequence[object]:
        return self._services.notices.receive(bodies)

    @override
    def reconcile(self, cluster: str, holder: str) -> object:
        return self._services.drains.reconcile(cluster, holder)

    @override
    def schedule(self) -> None:
        self._services.resync_schedule.run()

    @override
    def resync(self, message: str) -> object:
        request = ResyncRequest.read(message)
        service = self._services.resync if request.place is None else self._services.zonal_shifts
        return service.run(request)

    @override
    def place(self) -> object:
        return self._services.placement.run()

    @override
    def reports(self, cluster: str) -> Sequence[Report]:
        return self._reports.list(cluster, MOST_REPORTS)

    @override
    def times(self, cluster: str, workloads: Collection[Ref]) -> Mapping[Ref, WorkloadTimes]:
        now = self._context.clock.now()
        found = self._times.read(cluster, workloads)
        return {ref: told.times(now) for ref, told in found.items()}

    @override
    def hand_in(self, measurement: Measurement) -> None:
        for cluster in self._context.rig_clusters:
            for report in reversed(self._reports.list(cluster, limit=100_000)):
                measurement.report(report.interruption, (one.timed for one in report.reasons))


RESPONDERS: Final[Mapping[str, Callable[[ResponderContext], Responder]]] = {
    "plimsoll": Plimsoll,
    "drain": CommonDrain,
    "none": Responder,
}


class _Clusters:
    """The port `Clusters`: one connection to each cluster, kept."""

    def __init__(self, context: ResponderContext, workers: GreenletWorkers) -> None:
        clock, network = context.clock, context.wire
        self._open = {
            name: KubernetesCluster(
                SimulatedTransport(each, clock, network, "plimsoll"), name, clock, workers=workers
            )
            for name, each in context.rig_clusters.items()
        }

    def open(self, cluster: Cluster) -> KubernetesCluster:
        """Return the API of a cluster."""
        return self._open[cluster.name]


def _registered(rig_cluster: SimulatedRigCluster) -> Cluster:
    return Cluster(
        name=rig_cluster.name,
        kind=ClusterKind.EKS,
        mode=Mode.ACT,
        region=region_of(rig_cluster.spec.node_groups[0].zones[0]),
        added=EPOCH,
        policy=Policy(return_to_spot=rig_cluster.spec.return_to_spot),
    )


def _remembered(rig_clusters: Iterable[SimulatedRigCluster]) -> MemoryTimes:
    """Return a memory that holds what clusters declare as observed."""
    found = MemoryTimes()
    for each in rig_clusters:
        for of, seen in each.spec.observed.items():
            told = Samples(
                stop=_told(seen.stop),
                killed=_told(seen.stop, pods=1) if seen.stop and not seen.stop.pods else (),
                start=_told(seen.start),
            )
            found.merge(each.name, Ref(*of.split("/")), told)
    return found


def _told(seen: SeenTime | None, pods: int | None = None) -> tuple[Sample, ...]:
    """Return samples of pods that all took the same."""
    if seen is None:
        return ()
    seconds, count = ceil(seen.p95.total_seconds()), seen.pods if pods is None else pods
    return tuple(Sample(uid=f"before-{n}", at=EPOCH, seconds=seconds) for n in range(count))
