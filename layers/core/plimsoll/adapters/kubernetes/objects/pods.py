"""Pods: where they may run, and how long they take to start and to stop."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Raw

from plimsoll.adapters.kubernetes import schema
from plimsoll.adapters.kubernetes.decoding import decoded, naming
from plimsoll.adapters.kubernetes.objects.hooks import hook_seconds
from plimsoll.adapters.kubernetes.objects.metadata import (
    LONGEST_GRACE,
    annotations_of,
    bounded,
    condition,
    created,
    holds,
)
from plimsoll.adapters.kubernetes.scheduling import read_scheduling, stays
from plimsoll.domain.errors import BadInput
from plimsoll.domain.fields import Field
from plimsoll.domain.kubernetes import (
    OwnerKind,
    Pod,
    PodGroup,
    Ref,
    Resources,
    Scheduling,
    names,
)
from plimsoll.domain.observation import LONGEST_START

_SECONDS: Final = re.compile(r"[0-9]{1,6}")
"""Up to eleven days."""


@naming("PodGroup")
def parse_pod_group(obj: Raw) -> PodGroup:
    """Read a PodGroup. One without `gang` has the policy `basic`: kube-scheduler places its pods one by one."""
    found = decoded(obj, schema.PodGroup)
    meta, spec = found.metadata, found.spec
    gang, mode = spec.scheduling_policy.gang, spec.disruption_mode
    return PodGroup(
        ref=Ref("PodGroup", meta.namespace, meta.name),
        min_count=1 if gang is None else gang.min_count,
        together=mode is not None and mode.all is not None,
        priority=spec.priority or 0,
    )


@naming("Pod")
def parse_pod(obj: Raw) -> Pod:
    """Read a Pod. One of which nobody can tell where it may run stands on its node all the same."""
    pod: schema.Object[Any, schema.PodStatus]
    try:
        pod = decoded(obj, schema.Pod)
        unbound = "" if pod.spec.node_name else pod.metadata.name
        scheduling = read_scheduling(pod.spec, pod.metadata.labels, unbound, pod.status)
        unread = None
    except BadInput as error:
        pod = decoded(obj, schema.BarePod)
        scheduling, unread = Scheduling(requests=Resources(pods=1)), str(error)
    meta, spec, annotations = pod.metadata, pod.spec, annotations_of(pod.metadata)
    controller = meta.controller
    ready = condition(pod.status.conditions, "Ready")
    since = ready.last_transition_time if ready else ""
    deleting = Field(meta.deletion_timestamp, "metadata.deletionTimestamp").time_or_bound()
    grace = bounded(spec.termination_grace_period_seconds, LONGEST_GRACE)
    return Pod(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
        labels=meta.labels,
        annotations=annotations,
        owner=Ref(controller.kind, meta.namespace, controller.name) if controller else None,
        node=spec.node_name or None,
        gated=bool(spec.scheduling_gates),
        group=_group(meta, spec.scheduling_group),
        foreign=spec.scheduler_name != schema.DEFAULT_SCHEDULER,
        phase=pod.status.phase,
        ready=holds(ready),
        ready_since=Field(since, "status.conditions.lastTransitionTime").time_or_bound(),
        deleting=deleting,
        stopping_since=_stopping_since(meta, deleting),
        started=Field(pod.status.start_time, "status.startTime").time_or_bound(),
        start_seconds=_started_in(pod, ready),
        created=created(meta),
        grace_seconds=grace,
        stated_stop_seconds=_stated(annotations, names.STOP_SECONDS, grace),
        checkpoint_seconds=_stated(annotations, names.CHECKPOINT_TAKES_SECONDS, LONGEST_GRACE),
        hook_seconds=hook_seconds(pod.spec),
        generate_name=meta.generate_name,
        priority=spec.priority,
        priority_class=spec.priority_class_name,
        terminates=spec.active_deadline_seconds is not None,
        preempts=spec.preemption_policy != "Never",
        mirror=names.MIRROR in annotations
        or (controller is not None and controller.kind == OwnerKind.NODE),
        restarts=spec.restart_policy != "Never",
        scheduling=scheduling,
        unread=unread,
    )


def _group(meta: schema.Metadata, named: schema.SchedulingGroup | None) -> PodGroup | None:
    """Return the group that a pod names: only its object says more of it."""
    if named is None or not named.pod_group_name:
        return None
    return PodGroup(ref=Ref("PodGroup", meta.namespace, named.pod_group_name))


def _stopping_since(meta: schema.Metadata, deleting: datetime | None) -> datetime | None:
    """Return when a pod was asked to stop: a shorter grace period counts from the first request.

    https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination
    """
    grace = meta.deletion_grace_period_seconds
    if deleting is None or grace is None:
        return None
    return deleting - timedelta(seconds=bounded(grace, LONGEST_GRACE))


def _started_in(
    pod: schema.Object[Any, schema.PodStatus], ready: schema.Condition | None
) -> int | None:
    """Return how many seconds after it got its node a pod was Ready, as far as that tells how long it took to start.

    One whose container was restarted became Ready once more, later than the first time.
    """
    status = pod.status
    sidecars = {c.name for c in getattr(pod.spec, "init_containers", ()) if stays(c)}
    running = (
        *status.container_statuses,
        *(c for c in status.init_container_statuses if c.name in sidecars),
    )
    if any(container.restart_count for container in running):
        return None
    scheduled = condition(status.conditions, "PodScheduled")
    if ready is None or scheduled is None or not (holds(ready) and holds(scheduled)):
        return None
    try:  # `Field` takes ten times as long, and this is asked of every pod of a cluster
        took = datetime.fromisoformat(ready.last_transition_time) - datetime.fromisoformat(
            scheduled.last_transition_time
        )
    except (ValueError, TypeError, OverflowError):
        return None
    return took.seconds if timedelta() <= took <= LONGEST_START else None


def _stated(annotations: Mapping[str, str], key: str, most: int) -> int | None:
    """Return how long the owner of a pod says that something takes; no number of seconds counts as nothing."""
    stated = annotations.get(key, "")
    return min(int(stated), most) if _SECONDS.fullmatch(stated) else None
