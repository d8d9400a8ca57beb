"""Puts the services together: for the functions, for rigs and for tests alike.

They differ in their adapters alone, so whatever a rig or a test runs is wired as it is on AWS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from plimsoll.domain.registry import Cluster, Mode
from plimsoll.services.drains import DrainService
from plimsoll.services.dry_run import DryRun
from plimsoll.services.instance_locator import InstanceLocator
from plimsoll.services.node_sums import NodeSums
from plimsoll.services.notices import NoticeService
from plimsoll.services.observed_times import ObservedTimes
from plimsoll.services.placement import PlacementService
from plimsoll.services.ports import (
    Announcer,
    Clusters,
    Instances,
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
    WakeUps,
    Workers,
    ZonalShifts,
)
from plimsoll.services.preflight import PreflightService
from plimsoll.services.resync import ResyncSchedule, ResyncService
from plimsoll.services.taint_confirmation import TaintConfirmation
from plimsoll.services.trusted_sources import TrustedSources
from plimsoll.services.wake_up_series import WakeUpSeries
from plimsoll.services.zonal_shifts import ZonalShiftService

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


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
    reports: Reports
    pools: Pools
    times: Times
    announcer: Announcer
    wake_ups: WakeUps
    resyncs: Resyncs
    clock: RepeatingClock
    workers: Workers
    cluster_workers: Workers
    """Places clusters side by side. Not `workers`: the placement of a cluster waits for those."""
    telemetry: Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What the functions run."""

    notices: NoticeService
    drains: DrainService
    placement: PlacementService
    preflight: PreflightService
    resync: ResyncService
    resync_schedule: ResyncSchedule
    zonal_shifts: ZonalShiftService


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
    have = {each.name: getattr(ports, each.name) for each in fields(ports)}
    have |= {"sources": sources, "series": WakeUpSeries(ports.wake_ups, ports.clock)}
    if kill_switch:
        have["registry"] = _OnlyObserved(ports.registry)

    def over[S: DataclassInstance](service: type[S], **besides: object) -> S:
        """Return a service over the ports that its fields name, and over what else it needs."""
        named = {each.name: have[each.name] for each in fields(service) if each.name in have}
        return service(**(named | besides))

    have["observed_times"] = over(ObservedTimes)
    locator = over(InstanceLocator)
    zonal_shifts = over(ZonalShiftService)
    notices = over(
        NoticeService,
        locator=locator,
        zonal_shifts=zonal_shifts,
        confirmation=over(TaintConfirmation, locator=locator),
        dry_run=over(DryRun, groups=lambda cluster, nodes: ports.groups(cluster).list(nodes)),
    )
    resync = over(ResyncService, notices=notices)
    return Services(
        notices=notices,
        drains=over(DrainService, node_sums=over(NodeSums)),
        placement=over(PlacementService, resync=resync),
        preflight=over(PreflightService),
        resync=resync,
        resync_schedule=over(ResyncSchedule),
        zonal_shifts=zonal_shifts,
    )
