"""Wires the planner of the queues to AWS and to Kubernetes: of the layer the only module that names adapters.

Each factory runs on first use, and what it makes is kept for the life of the process.
"""

from __future__ import annotations

import os
from functools import cache

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.clusters import OpenClusters
from plimsoll.adapters.dynamodb.nodes import DynamoNodeIndex
from plimsoll.adapters.dynamodb.observed_times import DynamoObservedTimes
from plimsoll.adapters.dynamodb.pools import DynamoPools
from plimsoll.adapters.dynamodb.registry import DynamoRegistry
from plimsoll.adapters.dynamodb.reports import DynamoReports
from plimsoll.adapters.nodegroups import ASKED, AwsNodeGroups
from plimsoll.adapters.sqs import SqsWakeUps
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.domain.registry import Cluster
from plimsoll.observability import CloudWatch
from plimsoll.services.observed_times import ObservedTimes
from plimsoll_batch.adapters.kubernetes.cluster import KubernetesQueues
from plimsoll_batch.adapters.preemptions import DynamoPreemptions
from plimsoll_batch.config import Config
from plimsoll_batch.observability import CloudWatchQueues
from plimsoll_batch.services.preemption_log import PreemptionLog
from plimsoll_batch.services.queues import ClusterQueues
from plimsoll_batch.services.scale_up import ScaleUp
from plimsoll_batch.services.wake_ups import WakeUpService


@cache
def config() -> Config:
    """Return the stack's settings."""
    return Config.from_env(os.environ)  # noqa: TID251 - handed to the one reader


@cache
def _aws() -> Aws:
    return Aws(config().aws_region)


@cache
def _workers() -> ThreadWorkers:
    return ThreadWorkers()


def _warn(what: str) -> None:
    CloudWatch().warn("adapter warning", because=what)


@cache
def _clusters() -> OpenClusters:
    return OpenClusters(_aws(), SystemClock(), _workers(), warn=_warn)


@cache
def _cluster(cluster: Cluster) -> KubernetesQueues:
    transport = _clusters().transport(cluster)
    return KubernetesQueues.of(transport, cluster.name, SystemClock(), _workers(), warn=_warn)


@cache
def _growing(cluster: Cluster) -> ScaleUp:
    aws = _aws().of_cluster(cluster)
    return ScaleUp(
        cluster=cluster,
        groups=AwsNodeGroups(
            aws,
            cluster.name,
            SystemClock(),
            api=lambda: _cluster(cluster).requests,
            warn=_warn,
            kinds=ASKED,
        ),
        pools=DynamoPools(_aws(), config().pools_table),
        reports=DynamoReports(_aws(), config().reports_table),
        telemetry=CloudWatch(),
    )


@cache
def _observed_times() -> ObservedTimes | None:
    if not config().times_table:
        return None
    return ObservedTimes(
        times=DynamoObservedTimes(_aws(), config().times_table),
        clock=SystemClock(),
        workers=_workers(),
        telemetry=CloudWatch(),
    )


@cache
def queues() -> ClusterQueues:
    """Return the queues of all registered clusters."""
    return ClusterQueues(
        registry=DynamoRegistry(_aws(), config().clusters_table),
        open=_cluster,
        wake_ups=SqsWakeUps(_aws(), config().wake_ups_queue),
        clock=SystemClock(),
        workers=_workers(),
        telemetry=CloudWatch(),
        growing=_growing if config().grow_groups else None,
        pods_per_second=config().pods_per_second,
        observed_times=_observed_times(),
        meter=CloudWatchQueues(),
        preemptions=PreemptionLog(
            history=DynamoPreemptions(_aws(), config().preemptions_table, _warn),
            telemetry=CloudWatch(),
        ),
    )


@cache
def wake_ups() -> WakeUpService:
    """Return what wakes the queues of a cluster by events."""
    return WakeUpService(
        registry=DynamoRegistry(_aws(), config().clusters_table),
        index=DynamoNodeIndex(_aws(), config().nodes_table),
        wake_ups=SqsWakeUps(_aws(), config().wake_ups_queue),
        clock=SystemClock(),
        telemetry=CloudWatch(),
        drills=config().accept_drills,
    )
