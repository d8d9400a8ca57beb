"""Conditions, and what they say about a pod or a node."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from plimsoll_simulation.fake_cluster.edits import Json, look, put
from plimsoll_simulation.fake_cluster.stamps import moment, stamp


def condition(obj: Json, kind: str) -> Json | None:
    """Return the condition of a type, if there is one."""
    for found in look(obj, "status", "conditions", default=()):
        if found["type"] == kind:
            return dict(found)
    return None


def is_true(obj: Json, kind: str) -> bool:
    """Whether a condition holds."""
    return any(
        found["type"] == kind and found["status"] == "True"
        for found in look(obj, "status", "conditions", default=())
    )


def with_condition(  # noqa: PLR0913 - the fields of a condition
    obj: Json,
    kind: str,
    status: str,
    *,
    now: datetime,
    reason: str | None = None,
    message: str | None = None,
) -> Json:
    """Return the object with a condition set; its time moves only when its status does."""
    old = condition(obj, kind)
    since = stamp(now) if old is None or old["status"] != status else old["lastTransitionTime"]
    new: Json = {"type": kind, "status": status, "lastTransitionTime": since}
    if reason is not None:
        new["reason"] = reason
    if message is not None:
        new["message"] = message
    if new == old:
        return obj
    others = look(obj, "status", "conditions", default=())
    if old is None:
        return put(obj, ("status", "conditions"), [*others, new])
    changed = [new if found["type"] == kind else found for found in others]
    return put(obj, ("status", "conditions"), changed)


def is_ready(obj: Json) -> bool:
    """Whether the Ready condition of a pod or a node is True."""
    return is_true(obj, "Ready")


def available_at(pod: Json, min_ready_seconds: int) -> datetime | None:
    """Return from when on a pod counts as available; None while it is not Ready.

    Source: k8s.io/kubernetes/pkg/api/v1/pod, IsPodAvailable.
    """
    ready = condition(pod, "Ready")
    if ready is None or ready["status"] != "True":
        return None
    return moment(ready["lastTransitionTime"]) + timedelta(seconds=min_ready_seconds)


def availability(
    pods: Iterable[Json], min_ready_seconds: int, now: datetime
) -> tuple[int, datetime | None]:
    """Return how many pods are available, and when the next one will be by waiting alone."""
    if not min_ready_seconds:
        return sum(1 for pod in pods if is_ready(pod)), None
    times = [at for pod in pods if (at := available_at(pod, min_ready_seconds)) is not None]
    later = [at for at in times if at > now]
    return len(times) - len(later), min(later, default=None)


def is_finished(pod: Json) -> bool:
    """Whether a pod has Succeeded or Failed."""
    return look(pod, "status", "phase") in {"Succeeded", "Failed"}


def is_deleting(obj: Json) -> bool:
    """Whether an object was told to go and has not gone yet."""
    return "deletionTimestamp" in obj["metadata"]


def is_active(pod: Json) -> bool:
    """Whether a controller counts a pod: not finished and not told to go.

    Source: k8s.io/kubernetes/pkg/controller, IsPodActive.
    """
    return "deletionTimestamp" not in pod["metadata"] and not is_finished(pod)


def controller_of(obj: Json) -> Json | None:
    """Return the owner reference of an object's controller."""
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return dict(owner)
    return None


def reference(owner: Json) -> Json:
    """Return the owner reference that makes `owner` the controller of a new object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
