"""Wires the services to AWS and to Kubernetes: of the layer the only module that names adapters.

Each factory runs on first use, and what it makes is kept for the life of the process. The services beside the
notices are imported when they are first needed, or by `make_ready` before the first event.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from functools import cache

from plimsoll.adapters.arc import ArcZonalShifts
from plimsoll.adapters.aws import Aws
from plimsoll.adapters.cached_registry import CachedRegistry
from plimsoll.adapters.canaries import Canaries
from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.clusters import OpenClusters
from plimsoll.adapters.dynamodb.nodes import DynamoNodeIndex
from plimsoll.adapters.dynamodb.observed_times import DynamoObservedTimes
from plimsoll.adapters.dynamodb.pools import DynamoPools
from plimsoll.adapters.dynamodb.registry import DynamoRegistry
from plimsoll.adapters.dynamodb.reports import DynamoReports
from plimsoll.adapters.ec2 import Ec2Instances
from plimsoll.adapters.nodegroups import AwsNodeGroups
from plimsoll.adapters.notices_queue import NoticesQueue
from plimsoll.adapters.sns import SnsAnnouncer
from plimsoll.adapters.sqs import SqsResyncs, SqsWakeUps
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.config import Config, has_telemetry_layer, in_lambda
from plimsoll.domain.registry import Cluster
from plimsoll.observability import CloudWatch
from plimsoll.services.ports import FrameSink, LayoutStore, Limits, Traces
from plimsoll.services.trusted_sources import TrustedSources
from plimsoll.services.untraced import UNTRACED
from plimsoll.services.wiring import Ports, Services, wire


@cache
def config() -> Config:
    """Return the stack's settings."""
    return Config.from_env(os.environ)  # noqa: TID251 - handed to the one reader


@cache
def aws() -> Aws:
    """Return the AWS clients."""
    return Aws(config().aws_region)


def make_ready(service: Callable[[Services], object]) -> None:
    """Import and make what every event needs, and a service, while Lambda starts the function.

    AWS runs that phase with more processor than the handler may have, and before a worker counts as
    free for events: https://docs.aws.amazon.com/lambda/latest/dg/best-practices.html
    Elsewhere it does nothing: who imports a handler need not have AWS at hand.
    """
    if not in_lambda():
        return
    try:
        aws().make_ready("dynamodb", "sqs", "sts")
        service(services())
    except Exception as error:  # noqa: BLE001 - an event meets it again, and its handler hands it back
        _warn(f"not made ready: {error}")


@cache
def _workers() -> ThreadWorkers:
    return ThreadWorkers()


def _warn(what: str) -> None:
    CloudWatch().warn("adapter warning", because=what)


@cache
def notices_queue() -> NoticesQueue:
    """Return the queue of notices and its dead-letter queue."""
    return NoticesQueue(aws=aws(), url=config().notices_queue, dead_url=config().notices_dead_queue)


@cache
def canaries() -> Canaries:
    """Return the canaries of this stack."""
    return Canaries(aws(), config().canary_secret, SystemClock())


@cache
def _clusters() -> OpenClusters:
    return OpenClusters(aws(), SystemClock(), _workers(), warn=_warn)


@cache
def _groups(cluster: Cluster) -> AwsNodeGroups:
    return AwsNodeGroups(
        aws().of_cluster(cluster),
        cluster.name,
        SystemClock(),
        api=lambda: _clusters().open(cluster).requests,
        warn=_warn,
    )


@cache
def _instances(cluster: Cluster) -> Ec2Instances:
    return Ec2Instances(aws().of_cluster(cluster), SystemClock())


def _limits(cluster: Cluster) -> Limits:
    from plimsoll.adapters.limits import AwsLimits  # noqa: PLC0415 - the preflight's

    return AwsLimits(aws().of_cluster(cluster))


def _policies_missing(cluster: Cluster) -> Collection[str]:
    from plimsoll.adapters.kubernetes.dry_runs import policies_missing  # noqa: PLC0415 - as above

    return policies_missing(_clusters().transport(cluster), cluster.name)


@cache
def _frames() -> FrameSink:
    # The drains': frames are made from plans, and the first cordon waits for no import of a plan.
    from plimsoll.adapters.dynamodb.frames import DynamoFrames  # noqa: PLC0415
    from plimsoll.adapters.frame_mailbox import FrameMailbox  # noqa: PLC0415

    store = DynamoFrames(aws(), config().tables["FramesTable"], _warn, single_attempt=True)
    announcer = SnsAnnouncer(aws(), config().report_topic)
    return FrameMailbox(store, announcer, config().console_url, _warn)


def _layouts() -> LayoutStore:
    from plimsoll.adapters.dynamodb.layouts import DynamoLayouts  # noqa: PLC0415 - placement's

    return DynamoLayouts(aws(), config().tables["TimesTable"], _warn)


@cache
def _traces() -> Traces:
    if not has_telemetry_layer():
        return UNTRACED
    try:
        from plimsoll.adapters.opentelemetry import OpenTelemetryTraces  # noqa: PLC0415 - the layer's
    except ImportError as error:
        _warn(f"no traces, since the layer has no OpenTelemetry: {error}")
        return UNTRACED
    return OpenTelemetryTraces(_warn)


@cache
def services() -> Services:
    """Return what the functions run."""
    clock, telemetry = SystemClock(), CloudWatch()
    ports = Ports(
        registry=CachedRegistry(
            DynamoRegistry(aws(), config().tables["ClustersTable"], _warn), telemetry
        ),
        index=DynamoNodeIndex(aws(), config().tables["NodesTable"], _warn),
        instances=Ec2Instances(aws(), clock),
        instances_of=_instances,
        shifts_of=lambda cluster: ArcZonalShifts(aws().of_cluster(cluster)),
        clusters=_clusters(),
        groups=_groups,
        limits=_limits,
        policies_missing=_policies_missing,
        announcer=SnsAnnouncer(aws(), config().report_topic),
        reports=DynamoReports(aws(), config().tables["ReportsTable"], _warn),
        pools=DynamoPools(aws(), config().tables["PoolsTable"], _warn),
        frames=_frames,
        times=DynamoObservedTimes(aws(), config().tables["TimesTable"], _warn),
        layouts=_layouts,
        wake_ups=SqsWakeUps(aws(), config().wake_ups_queue),
        resyncs=SqsResyncs(aws(), config().resyncs_queue),
        clock=clock,
        workers=_workers(),
        cluster_workers=ThreadWorkers(8),
        telemetry=telemetry,
        traces=_traces(),
    )
    return wire(
        ports,
        kill_switch=config().kill_switch,
        sources=TrustedSources(
            region=config().aws_region,
            account=config().account,
            canary_key=canaries().key,
            drills=config().accept_drills,
        ),
    )
