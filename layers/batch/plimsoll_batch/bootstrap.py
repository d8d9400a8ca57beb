"""Wires the planner of the queues to AWS and to Kubernetes: of the layer the only module that names adapters.

Each factory runs on first use, and what it makes is kept for the life of the process.
"""

from __future__ import annotations

import os
from functools import cache

from plimsoll.adapters.aws import Aws
from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.dynamodb.nodes import DynamoNodeIndex
from plimsoll.adapters.dynamodb.registry import DynamoRegistry
from plimsoll.adapters.sqs import SqsWakeUps
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.observability import CloudWatch
from plimsoll_batch.adapters.clusters import OpenQueues
from plimsoll_batch.config import Config
from plimsoll_batch.services.clusters import ClusterQueues
from plimsoll_batch.services.waking import Waking


@cache
def config() -> Config:
    """Return the stack's settings."""
    return Config.from_env(os.environ)  # noqa: TID251 - handed to the one reader


def _warn(what: str) -> None:
    CloudWatch().warn("adapter warning", because=what)


@cache
def queues() -> ClusterQueues:
    """Return the queues of all registered clusters."""
    aws, clock, workers = Aws(config().aws_region), SystemClock(), ThreadWorkers()
    return ClusterQueues(
        registry=DynamoRegistry(aws, config().clusters_table),
        clusters=OpenQueues(aws, clock, workers, warn=_warn),
        wake_ups=SqsWakeUps(aws, config().wake_ups_queue),
        clock=clock,
        workers=workers,
        telemetry=CloudWatch(),
        pods_per_second=config().pods_per_second,
    )


@cache
def waking() -> Waking:
    """Return what wakes the queues of a cluster by events."""
    aws = Aws(config().aws_region)
    return Waking(
        registry=DynamoRegistry(aws, config().clusters_table),
        index=DynamoNodeIndex(aws, config().nodes_table),
        wake_ups=SqsWakeUps(aws, config().wake_ups_queue),
        clock=SystemClock(),
        telemetry=CloudWatch(),
        drills=config().accept_drills,
    )
