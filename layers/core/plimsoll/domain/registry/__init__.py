"""Registered clusters, the entries of the node index, and the messages that ask for work on a cluster."""

from __future__ import annotations

from plimsoll.domain.registry.clusters import (
    LABELLED_CLUSTERS,
    OTHERS,
    Cluster,
    ClusterKind,
    IndexEntry,
    Mode,
    labelled,
)
from plimsoll.domain.registry.queue_changes import (
    JOB_ADMISSION,
    JOB_ANNOTATIONS,
    JOB_NODES,
    JOB_QUEUE,
    JOB_STOP,
    QUEUE_CHANGE_DETAIL_TYPE,
    agent_of,
)
from plimsoll.domain.registry.resyncs import RESYNC_EVERY, ResyncRequest, resync_requests

__all__ = [
    "JOB_ADMISSION",
    "JOB_ANNOTATIONS",
    "JOB_NODES",
    "JOB_QUEUE",
    "JOB_STOP",
    "LABELLED_CLUSTERS",
    "OTHERS",
    "QUEUE_CHANGE_DETAIL_TYPE",
    "RESYNC_EVERY",
    "Cluster",
    "ClusterKind",
    "IndexEntry",
    "Mode",
    "ResyncRequest",
    "agent_of",
    "labelled",
    "resync_requests",
]
