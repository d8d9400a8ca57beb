"""What `plimsoll jobs why` would say of Jobs for ever, said before they are created."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from plimsoll.adapters.kubernetes.calls import Call
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.errors import BadInput, MissingRights, NotFound
from plimsoll.domain.kubernetes import names as core_names
from plimsoll.services.ports import Clock
from plimsoll_batch.adapters.documents import did_you_mean, told
from plimsoll_batch.adapters.kubernetes.cluster import KubernetesQueues
from plimsoll_batch.adapters.kubernetes.job_reader import job_reader
from plimsoll_batch.adapters.kubernetes.pod_admission import PodAdmission
from plimsoll_batch.domain import names
from plimsoll_batch.domain.explanation import hopeless
from plimsoll_batch.domain.jobs import Job, assemble, why_unranked
from plimsoll_batch.domain.quota import (
    Grants,
    Queue,
    QueueConfiguration,
    granted_by,
    priced_queues,
    why_denied,
)
from plimsoll_cli.environment import warn

_GET_NAMESPACE: Final = Call(verb="get", resource="namespaces")
_LABELS: Final = {names.QUEUE, names.GANG, names.ROLE}
_ANNOTATIONS: Final = {
    names.GANG_SIZE,
    names.PRIORITY,
    names.TOPOLOGY,
    names.DATA,
    names.START_SECONDS,
    names.CHECKPOINT_SECONDS,
    names.CHECKPOINT_TAKES_SECONDS,
    names.HOLD,
    names.ON_INTERRUPTION,
    names.LEASE_NODES,
    names.LIFECYCLE,
}
_KNOWN: Final = sorted(
    value
    for module in (core_names, names)
    for value in vars(module).values()
    if isinstance(value, str) and value.startswith(core_names.PREFIX)
)


def refuse_misspelt(jobs: Sequence[Mapping[str, Any]]) -> None:
    """Refuse labels and annotations that Plimsoll would not read.

    Raises:
        BadInput: names each with its place.
    """
    problems = []
    for job in jobs:
        template = (job["spec"].get("template") or {}).get("metadata") or {}
        for place, meta in (("metadata", job["metadata"]), ("its pods", template)):
            for kind in ("labels", "annotations"):
                for key in meta.get(kind) or {}:
                    why = _misspelt(str(key), kind)
                    if why is not None:
                        problems.append(f"Job {_name(job)}: {place}.{kind}: {key}: {why}")
    if problems:
        raise BadInput(told(problems))


def refuse_hopeless(requests: Requests, jobs: Sequence[Mapping[str, Any]], clock: Clock) -> None:
    """Refuse Jobs that would wait for ever: without a queue, with more than it can ever have, or unreadable.

    Raises:
        BadInput: names each problem.
    """
    now = clock.now()
    read = [_read(job, number, now) for number, job in enumerate(jobs)]
    problems = [f"{job}: {words}" for job in read for words in job.wrong]
    configuration = _configuration(requests, clock)
    if configuration is not None:
        problems += _against(requests, read, configuration, now)
    if problems:
        raise BadInput(told(list(dict.fromkeys(problems))))


def _misspelt(key: str, kind: str) -> str | None:
    if not key.startswith(core_names.PREFIX):
        return None
    if key not in _KNOWN:
        return f"Plimsoll reads no such name{did_you_mean(key, _KNOWN)}"
    if kind == "annotations" and key in _LABELS:
        return "is a label, and stands among the annotations"
    if kind == "labels" and key in _ANNOTATIONS:
        return "is an annotation, and stands among the labels"
    return None


def _configuration(requests: Requests, clock: Clock) -> QueueConfiguration | None:
    """Return the queues of a cluster; None where they cannot be read by whoever submits."""
    cluster = KubernetesQueues(requests, clock, workers=SerialWorkers(), warn=warn)
    try:
        found = cluster.configuration()
    except MissingRights as error:
        warn(f"nobody checks whether the queue exists and has room: {error}")
        return None
    if found is None:
        raise BadInput(
            "the cluster has no queues: configure them with `plimsoll queues apply -f FILE`"
        )
    return found


def _read(job: Mapping[str, Any], number: int, now: datetime) -> Job:
    """Return a Job as the planner will read it."""
    meta = job["metadata"]
    added = {
        "name": _name(job),
        "uid": f"new-{number}",
        "resourceVersion": "",
        "creationTimestamp": f"{now:%Y-%m-%dT%H:%M:%SZ}",
    }
    found = job_reader(PodAdmission())({**job, "metadata": {**meta, **added}})
    if found is None:
        raise BadInput(f"Job {_name(job)}: belongs to another object: submit that one")
    return found


def _against(
    requests: Requests, read: Sequence[Job], configuration: QueueConfiguration, now: datetime
) -> Iterator[str]:
    queues = {queue.name: queue for queue in configuration.queues}
    for job in read:
        unranked = why_unranked(job.priority, configuration.priorities)
        if unranked is not None:
            yield f"{job}: {unranked}"
    gangs = assemble(
        read,
        (),
        now,
        leasing={queue.name for queue in configuration.queues if queue.leases_nodes},
        priced=priced_queues(configuration),
        priorities=configuration.priorities,
    )
    for jobs in gangs:
        gang = jobs.gang
        queue = queues.get(gang.queue)
        if queue is None:
            known = ", ".join(sorted(queues)[:10]) or "none"
            yield f"{gang}: there is no queue {gang.queue}{did_you_mean(gang.queue, [*queues])} (queues: {known})"
            continue
        denied = _denied(requests, queue, gang.namespace) if queue.labelled else None
        if denied is not None:
            yield f"{gang}: {denied}"
        if queue.max_priority is not None and gang.priority > queue.max_priority:
            warn(
                f"{gang}: its priority {gang.priority} counts as {queue.max_priority}: queue {queue.name} allows no more"
            )
        for words in hopeless(configuration, replace(gang, gates=())):
            yield f"{gang}: {words}"


def _denied(requests: Requests, queue: Queue, namespace: str) -> str | None:
    """Say why a namespace may not use a queue; None where it may, or whoever submits cannot read that."""
    try:
        labels = requests.send(_GET_NAMESPACE, name=namespace)["metadata"].get("labels") or {}
    except MissingRights as error:
        warn(f"nobody checks whether namespace {namespace} may use the queue: {error}")
        return None
    except NotFound:
        labels = {}
    return why_denied(queue, namespace, Grants(by_namespace={namespace: granted_by(labels)}))


def _name(job: Mapping[str, Any]) -> str:
    meta = job["metadata"]
    return str(meta.get("name") or f"{meta.get('generateName')}x")
