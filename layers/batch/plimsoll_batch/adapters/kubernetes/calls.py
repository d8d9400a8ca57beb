"""Every call that the planner of the queues makes to a cluster.

`infra/cluster/batch` grants these and no more, to a group of their own, and a test compares the two.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from plimsoll.adapters.kubernetes.calls import (
    CREATE_EVENT,
    CREATE_LEASE,
    GET_LEASE,
    LIST_NAMESPACES,
    LIST_NODES,
    LIST_POD_GROUPS,
    LIST_PODS,
    PATCH_NODE,
    PATCH_POD,
    UPDATE_LEASE,
    Call,
)
from plimsoll.adapters.kubernetes.errors import Grant
from plimsoll.domain.kubernetes import NAMESPACE
from plimsoll_batch.domain.frameworks import JOB, Framework
from plimsoll_batch.domain.names import CONFIGURATION, LEASE

GRANT: Final = Grant(manifests="infra/cluster/batch", group="plimsoll-batch")


def call_of(row: Framework, verb: str) -> Call:
    """Return a call about the objects of a row."""
    return Call(verb=verb, group=row.group, version=row.version, resource=row.resource)


OF_ROW: Final = ("get", "list", "watch", "patch")
"""What the planner does with the objects of a row."""
LIST_JOBS: Final = call_of(JOB, "list")
GET_POD_GROUP: Final = replace(LIST_POD_GROUPS, verb="get")
CREATE_POD_GROUP: Final = replace(LIST_POD_GROUPS, verb="create")
PATCH_POD_GROUP: Final = replace(LIST_POD_GROUPS, verb="patch")
"""Only where the pods of a gang name one."""
GET_POD: Final = Call(verb="get", resource="pods")
GET_CONFIGURATION: Final = Call(
    verb="get", resource="configmaps", only_in=NAMESPACE, only=CONFIGURATION
)
LIST_LIMIT_RANGES: Final = Call(verb="list", resource="limitranges")
LIST_RUNTIME_CLASSES: Final = Call(verb="list", group="node.k8s.io", resource="runtimeclasses")
FOLLOWED: Final = (LIST_NODES, LIST_PODS, LIST_JOBS, LIST_NAMESPACES)
"""Listed once and then watched, where that is allowed; Namespaces where a queue has to be granted."""

CALLS: Final = (
    *FOLLOWED,
    *(replace(call, verb="watch") for call in FOLLOWED),
    LIST_LIMIT_RANGES,
    LIST_RUNTIME_CLASSES,
    call_of(JOB, "get"),
    call_of(JOB, "patch"),
    GET_POD_GROUP,
    CREATE_POD_GROUP,
    PATCH_POD_GROUP,
    GET_POD,
    PATCH_POD,
    PATCH_NODE,
    GET_CONFIGURATION,
    CREATE_EVENT,
    replace(GET_LEASE, only=LEASE),
    CREATE_LEASE,
    replace(UPDATE_LEASE, only=LEASE),
)
