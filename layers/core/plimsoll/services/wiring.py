"""Puts the services together: for the functions, for rigs and for tests alike.

They differ in their adapters alone, so whatever a rig or a test runs is wired as it is on AWS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from plimsoll.domain.clusters import Cluster
from plimsoll.services.drains import DrainService
from plimsoll.services.dry_run import DryRun
from plimsoll.services.each_cluster import EachCluster
from plimsoll.services.locator import InstanceLocator
from plimsoll.services.node_sums import NodeSums
from plimsoll.services.notices import NoticeService, Senders
from plimsoll.services.placement import PlacementService
from plimsoll.services.ports import (
    Announcer,
    Clock,
    Clusters,
    Instances,
    NodeGroups,
    NodeIndex,
    Registry,
    Reports,
    Telemetry,
    WakeUps,
    Workers,
)
from plimsoll.services.resync import ResyncService


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """An implementation of every port."""

    registry: Registry
    index: NodeIndex
    instances: Instances
    clusters: Clusters
    groups: Callable[[Cluster], NodeGroups]
    """Returns the node groups of a cluster, the same object every time: it remembers."""
    reports: Reports
    announcer: Announcer
    wake_ups: WakeUps
    clock: Clock
    workers: Workers
    cluster_workers: Workers
    """Resyncs clusters side by side. Not `workers`: the resync of a cluster waits for those."""
    telemetry: Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What the functions run."""

    notices: NoticeService
    drains: DrainService
    placement: PlacementService
    resync: ResyncService


def wire(ports: Ports, *, kill_switch: bool = False, senders: Senders = Senders()) -> Services:  # noqa: B008 - frozen
    """Return the services over these ports.

    Args:
        ports: the adapters.
        kill_switch: nothing is written to any cluster or node group.
        senders: whose notices are taken.
    """
    notices = NoticeService(
        locator=InstanceLocator(
            registry=ports.registry,
            index=ports.index,
            instances=ports.instances,
            clock=ports.clock,
            telemetry=ports.telemetry,
        ),
        registry=ports.registry,
        clusters=ports.clusters,
        dry_run=DryRun(
            groups=lambda cluster, nodes: ports.groups(cluster).list(nodes),
            clock=ports.clock,
            workers=ports.workers,
            telemetry=ports.telemetry,
        ),
        reports=ports.reports,
        wake_ups=ports.wake_ups,
        clock=ports.clock,
        workers=ports.workers,
        telemetry=ports.telemetry,
        kill_switch=kill_switch,
        senders=senders,
    )
    each = EachCluster(
        registry=ports.registry, workers=ports.cluster_workers, telemetry=ports.telemetry
    )
    resync = ResyncService(
        each=each,
        index=ports.index,
        instances=ports.instances,
        clusters=ports.clusters,
        groups=ports.groups,
        reports=ports.reports,
        announcer=ports.announcer,
        notices=notices,
        wake_ups=ports.wake_ups,
        clock=ports.clock,
        telemetry=ports.telemetry,
        kill_switch=kill_switch,
    )
    return Services(
        notices=notices,
        drains=DrainService(
            registry=ports.registry,
            clusters=ports.clusters,
            groups=ports.groups,
            instances=ports.instances,
            node_sums=NodeSums(index=ports.index, instances=ports.instances, clock=ports.clock),
            reports=ports.reports,
            clock=ports.clock,
            workers=ports.workers,
            telemetry=ports.telemetry,
            kill_switch=kill_switch,
        ),
        placement=PlacementService(
            each=each,
            clusters=ports.clusters,
            groups=ports.groups,
            resync=resync,
            reports=ports.reports,
            wake_ups=ports.wake_ups,
            clock=ports.clock,
            workers=ports.workers,
            telemetry=ports.telemetry,
            kill_switch=kill_switch,
        ),
        resync=resync,
    )
