"""Which namespaces may use a queue, and how high the priority of their gangs counts there.

Admission policies say the same when an object is created. The plan asks again: a policy may be missing or late, and
objects were there before it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from plimsoll_batch.domain.jobs import Gang, GangJobs
from plimsoll_batch.domain.names import GRANT
from plimsoll_batch.domain.quota.cohorts import Queue, QueueConfiguration


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """The queues that are granted to the namespaces of a cluster."""

    by_namespace: Mapping[str, Collection[str]] = field(default_factory=dict)
    unread: str | None = None
    """Why they could not be read; then no queue is granted to anybody."""


def granted_by(labels: Mapping[str, str]) -> frozenset[str]:
    """Return the queues that the labels of a Namespace grant."""
    return frozenset(
        key.removeprefix(GRANT)
        for key, value in labels.items()
        if key.startswith(GRANT) and value == "true"
    )


def why_denied(queue: Queue, namespace: str, grants: Grants) -> str | None:
    """Say why a namespace may not use a queue; None where it may."""
    if not queue.labelled or queue.name in grants.by_namespace.get(namespace, ()):
        return None
    if grants.unread is not None:
        return f"nobody knows whether namespace {namespace} may use queue {queue.name}: {grants.unread}"
    return (
        f"namespace {namespace} may not use queue {queue.name}: whoever may grant it labels the namespace"
        f" {GRANT}{queue.name}=true"
    )


def with_access(
    gangs: Collection[GangJobs], configuration: QueueConfiguration, grants: Grants
) -> list[GangJobs]:
    """Return gangs as their queues count them: those without a grant wait, unless they run already."""
    queues = {queue.name: queue for queue in configuration.queues}
    if not any(queue.labelled or queue.max_priority is not None for queue in queues.values()):
        return [*gangs]
    return [
        replace(jobs, gang=counted(jobs.gang, queues[jobs.gang.queue], grants, runs=jobs.admitted))
        if jobs.gang.queue in queues
        else jobs
        for jobs in gangs
    ]


def counted(gang: Gang, queue: Queue, grants: Grants, *, runs: bool) -> Gang:
    """Return a gang as its queue counts it.

    A gang that runs keeps its place when its grant is withdrawn; once it has to wait again, it waits for a grant.
    """
    if queue.max_priority is not None and gang.priority > queue.max_priority:
        gang = replace(gang, priority=queue.max_priority, asked_priority=gang.priority)
    denied = None if runs else why_denied(queue, gang.namespace, grants)
    return gang if denied is None else replace(gang, gates=(denied, *gang.gates), entitled=False)
