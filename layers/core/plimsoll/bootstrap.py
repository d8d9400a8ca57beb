"""Wires the services to the world: the only module that names adapters.

Each factory runs on first use and is kept for the life of the process. What a function does not
use is not imported; what it will surely use `make_ready` brings before its first event.
"""

from __future__ import annotations

import os
from functools import cache

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.cached_registry import CachedRegistry
from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.clusters import OpenClusters
from plimsoll.adapters.dynamodb import DynamoNodeIndex, DynamoRegistry, DynamoReports
from plimsoll.adapters.ec2 import Ec2Instances
from plimsoll.adapters.kubernetes import client
from plimsoll.adapters.nodegroups import AwsNodeGroups
from plimsoll.adapters.notices_queue import NoticesQueue
from plimsoll.adapters.sqs import SqsWakeUps
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.config import Config, in_lambda
from plimsoll.domain.clusters import Cluster
from plimsoll.observability import CloudWatch
from plimsoll.services.drains import DrainService
from plimsoll.services.locator import InstanceLocator
from plimsoll.services.notices import NoticeService
from plimsoll.services.ports import NodeGroups
from plimsoll.services.rehearsal import Rehearsal
from plimsoll.services.resync import ResyncService


@cache
def config() -> Config:
    """Return the stack's settings."""
    return Config.from_env(os.environ)  # noqa: TID251 - handed to the one reader


@cache
def aws() -> Aws:
    """Return the AWS clients."""
    return Aws(config().aws_region)


def make_ready() -> None:
    """Import and make what every event needs, while Lambda starts the function.

    AWS runs that phase with more processor than the handler may have, and before a worker counts as
    free for events: https://docs.aws.amazon.com/lambda/latest/dg/best-practices.html
    Elsewhere it does nothing: who imports a handler need not have AWS at hand.
    """
    if not in_lambda():
        return
    try:
        aws().make_ready("dynamodb", "sqs")
        client.load()
    except Exception as error:  # noqa: BLE001 - an event meets it again, and its handler hands it back
        _warn(f"not made ready: {error}")


@cache
def workers() -> ThreadWorkers:
    """Return the threads for calls that do not themselves need threads."""
    return ThreadWorkers()


def _warn(what: str) -> None:
    CloudWatch().warn("adapter warning", because=what)


@cache
def clusters() -> OpenClusters:
    """Return the opener of registered clusters."""
    return OpenClusters(
        aws(),
        SystemClock(),
        workers(),
        warn=_warn,
    )


@cache
def registry() -> CachedRegistry:
    """Return the registry of clusters."""
    return CachedRegistry(DynamoRegistry(aws(), config().clusters_table), CloudWatch())


@cache
def reports() -> DynamoReports:
    """Return the store of reports."""
    return DynamoReports(aws(), config().reports_table)


@cache
def index() -> DynamoNodeIndex:
    """Return the node index."""
    return DynamoNodeIndex(aws(), config().nodes_table)


@cache
def instances() -> Ec2Instances:
    """Return EC2."""
    return Ec2Instances(aws(), SystemClock())


@cache
def wake_ups() -> SqsWakeUps:
    """Return the queue of wake-ups."""
    return SqsWakeUps(aws(), config().wake_ups_queue)


@cache
def notices_queue() -> NoticesQueue:
    """Return the queue of notices and its dead-letter queue."""
    return NoticesQueue(aws=aws(), url=config().notices_queue, dead_url=config().notices_dead_queue)


@cache
def groups(cluster: Cluster) -> NodeGroups:
    """Return the node groups of a cluster, always the same object: it remembers."""
    return AwsNodeGroups(
        aws().in_region(cluster.region),
        cluster.name,
        SystemClock(),
        api=lambda: clusters().open(cluster).requests,
        warn=_warn,
    )


@cache
def rehearsal() -> Rehearsal:
    """Return the planner of what would be done."""
    return Rehearsal(groups=groups, reports=reports(), clock=SystemClock(), telemetry=CloudWatch())


@cache
def notices() -> NoticeService:
    """Return the handling of notices."""
    return NoticeService(
        ownership=InstanceLocator(
            registry=registry(),
            index=index(),
            instances=instances(),
            clock=SystemClock(),
            telemetry=CloudWatch(),
        ),
        clusters=clusters(),
        rehearsal=rehearsal(),
        reports=reports(),
        wake_ups=wake_ups(),
        clock=SystemClock(),
        workers=workers(),
        telemetry=CloudWatch(),
        kill_switch=config().kill_switch,
        drills=config().accept_drills,
        region=config().aws_region,
    )


@cache
def drains() -> DrainService:
    """Return the drain."""
    return DrainService(
        registry=registry(),
        clusters=clusters(),
        groups=groups,
        instances=instances(),
        reports=reports(),
        clock=SystemClock(),
        workers=workers(),
        telemetry=CloudWatch(),
        kill_switch=config().kill_switch,
    )


@cache
def resync() -> ResyncService:
    """Return the resync. Its threads are its own: each cluster's resync needs the others."""
    return ResyncService(
        registry=registry(),
        index=index(),
        instances=instances(),
        clusters=clusters(),
        reports=reports(),
        notices=notices(),
        wake_ups=wake_ups(),
        clock=SystemClock(),
        workers=ThreadWorkers(8),
        telemetry=CloudWatch(),
        kill_switch=config().kill_switch,
    )
