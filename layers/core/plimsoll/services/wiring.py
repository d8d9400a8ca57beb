"""Puts the services together: for the functions, for rigs and for tests alike.

They differ in their adapters alone, so whatever a rig or a test runs is wired as it is on AWS.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING

from plimsoll.domain.registry import Cluster, Mode
from plimsoll.services.instance_locator import InstanceLocator
from plimsoll.services.notices import NoticeService
from plimsoll.services.ports import (
    Announcer,
    Clusters,
    FrameSink,
    Instances,
    LayoutStore,
    Limits,
    NodeGroups,
    NodeIndex,
    Pools,
    RegisteredClusters,
    RepeatingClock,
    Reports,
    Resyncs,
    Telemetry,
    Times,
    Traces,
    WakeUps,
    Workers,
    ZonalShifts,
)
from plimsoll.services.taint_confirmation import TaintConfirmation
from plimsoll.services.trusted_sources import TrustedSources
from plimsoll.services.untraced import UNTRACED
from plimsoll.services.wake_up_series import WakeUpSeries
from plimsoll.services.zonal_shifts import ZonalShiftService

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from plimsoll.services.drains import DrainService
    from plimsoll.services.dry_run import DryRun
    from plimsoll.services.node_sums import NodeSums
    from plimsoll.services.observed_times import ObservedTimes
    from plimsoll.services.placement import PlacementService
    from plimsoll.services.preflight import PreflightService
    from plimsoll.services.resync import ResyncSchedule, ResyncService


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """An implementation of every port."""

    registry: RegisteredClusters
    index: NodeIndex
    instances: Instances
    """Those of the stack's own account: whose cluster an instance is that the index does not know."""
    instances_of: Callable[[Cluster], Instances]
    """Returns those of a cluster's account and region."""
    shifts_of: Callable[[Cluster], ZonalShifts]
    """Returns those of a cluster's account and region."""
    clusters: Clusters
    groups: Callable[[Cluster], NodeGroups]
    """Returns the node groups of a cluster, the same object every time: it remembers."""
    limits: Callable[[Cluster], Limits]
    """Returns those of a cluster's account and region."""
    policies_missing: Callable[[Cluster], Collection[str]] = lambda _: ()
    """Returns the admission policies of our group that a cluster lacks; rigs have none."""
    reports: Reports
    pools: Pools
    times: Times
    layouts: Callable[[], LayoutStore]
    """Returns where chosen layouts are kept. Placement is imported for it, and the first cordon waits for none of that."""
    frames: Callable[[], FrameSink] | None = None
    """Returns what takes the frames of storms, the same object every time; None: no storm is shown."""
    announcer: Announcer
    wake_ups: WakeUps
    resyncs: Resyncs
    clock: RepeatingClock
    workers: Workers
    cluster_workers: Workers
    """Places clusters side by side. Not `workers`: the placement of a cluster waits for those."""
    telemetry: Telemetry
    traces: Traces = UNTRACED


@dataclass(frozen=True)
class Services:
    """What the functions run.

    Beside the notices, a service is imported when it is first asked for: most of a cold start is imports, and the
    first cordon waits for it.
    """

    ports: Ports
    sources: TrustedSources

    @cached_property
    def notices(self) -> NoticeService:
        """Cordons nodes."""
        return self._over(NoticeService, dry_run=lambda: self._dry_run)

    @cached_property
    def locator(self) -> InstanceLocator:
        """Finds the cluster of an instance."""
        return self._over(InstanceLocator)

    @cached_property
    def confirmation(self) -> TaintConfirmation:
        """Confirms what agents tell."""
        return self._over(TaintConfirmation)

    @cached_property
    def series(self) -> WakeUpSeries:
        """Wakes drains."""
        return WakeUpSeries(self.ports.wake_ups, self.ports.clock)

    @cached_property
    def zonal_shifts(self) -> ZonalShiftService:
        """Follows zonal shifts."""
        return self._over(ZonalShiftService)

    @cached_property
    def drains(self) -> DrainService:
        """Moves pods off interrupted nodes."""
        from plimsoll.services.drains import DrainService

        return self._over(DrainService)

    @cached_property
    def placement(self) -> PlacementService:
        """Keeps floors and spread groups."""
        from plimsoll.services.placement import PlacementService

        return self._over(PlacementService)

    @cached_property
    def preflight(self) -> PreflightService:
        """Says what would be short in a storm."""
        from plimsoll.services.preflight import PreflightService

        return self._over(PreflightService)

    @cached_property
    def resync(self) -> ResyncService:
        """Finds what no notice told."""
        from plimsoll.services.resync import ResyncService

        return self._over(ResyncService)

    @cached_property
    def resync_schedule(self) -> ResyncSchedule:
        """Asks for resyncs."""
        from plimsoll.services.resync import ResyncSchedule

        return self._over(ResyncSchedule)

    @cached_property
    def observed_times(self) -> ObservedTimes:
        """Remembers how long pods take."""
        from plimsoll.services.observed_times import ObservedTimes

        return self._over(ObservedTimes)

    @cached_property
    def node_sums(self) -> NodeSums:
        """Estimates what a cluster needs that cannot be read."""
        from plimsoll.services.node_sums import NodeSums

        return self._over(NodeSums)

    @cached_property
    def _dry_run(self) -> DryRun:
        from plimsoll.services.dry_run import DryRun

        groups = self.ports.groups
        return self._over(DryRun, groups=lambda cluster, nodes: groups(cluster).list(nodes))

    def _over[S: DataclassInstance](self, service: type[S], **besides: object) -> S:
        """Return a service over the ports and services that its fields name, and over what else it needs."""
        named = {
            each.name: getattr(self.ports if hasattr(self.ports, each.name) else self, each.name)
            for each in fields(service)
            if each.init and each.name not in besides
        }
        return service(**named, **besides)


@dataclass(frozen=True, slots=True)
class _OnlyObserved:
    """The registry under the kill switch: nothing is written to any cluster, whatever its mode."""

    registry: RegisteredClusters

    def get(self, name: str) -> Cluster | None:
        found = self.registry.get(name)
        return None if found is None else replace(found, mode=Mode.OBSERVE)

    def list(self) -> Sequence[Cluster]:
        return [replace(cluster, mode=Mode.OBSERVE) for cluster in self.registry.list()]


def wire(
    ports: Ports,
    *,
    kill_switch: bool = False,
    sources: TrustedSources = TrustedSources(),  # noqa: B008 - frozen
) -> Services:
    """Return the services over these ports.

    Args:
        ports: the adapters.
        kill_switch: nothing is written to any cluster or node group.
        sources: whose notices are taken.
    """
    if kill_switch:
        ports = replace(ports, registry=_OnlyObserved(ports.registry))
    return Services(ports, sources)
