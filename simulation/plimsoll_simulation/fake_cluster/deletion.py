"""Deletion: preconditions, grace periods, and pods that go at once.

Only pods are deleted gracefully. A pod that stands on no node, or is finished, goes at once. A
second delete may only shorten the grace period, and counts it from the first one; grace 0 takes
the object away while the container may still run ("force delete"). An object with finalizers stays
until the last of them is taken off, whatever the grace period.

Sources: k8s.io/apiserver/pkg/registry/rest/delete.go (BeforeDelete),
k8s.io/apiserver/pkg/registry/generic/registry/store.go (markAsDeleting),
k8s.io/kubernetes/pkg/registry/core/pod/strategy.go (CheckGracefulDelete),
https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

from plimsoll_simulation.fake_cluster.conditions import is_finished
from plimsoll_simulation.fake_cluster.edits import Json, look
from plimsoll_simulation.fake_cluster.refusals import conflict
from plimsoll_simulation.fake_cluster.resources import BY_PLURAL
from plimsoll_simulation.fake_cluster.stamps import moment, stamp
from plimsoll_simulation.fake_cluster.store import Store, key_of


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """What a delete may ask for."""

    grace_seconds: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    orphan: bool = False
    """Leave what the object owns."""
    dry_run: bool = False

    @classmethod
    def parse(cls, body: Json | None, query: Mapping[str, str] | None = None) -> Self:
        """Read meta/v1 DeleteOptions, which may stand in the body or in the query."""
        given, asked = body or {}, query or {}
        grace = given.get("gracePeriodSeconds", asked.get("gracePeriodSeconds"))
        policy = given.get("propagationPolicy", asked.get("propagationPolicy"))
        return cls(
            grace_seconds=None if grace is None else int(grace),
            uid=look(given, "preconditions", "uid"),
            resource_version=look(given, "preconditions", "resourceVersion"),
            orphan=policy == "Orphan" or given.get("orphanDependents") is True,
            dry_run=bool(given.get("dryRun") or asked.get("dryRun")),
        )


def delete(
    store: Store, resource: str, obj: Json, options: DeleteOptions, *, now: datetime
) -> Json:
    """Delete an object, or tell it to go; return its last state.

    Raises:
        RefusedError: 409, a precondition does not hold.
    """
    meta = obj["metadata"]
    _precondition(resource, meta, "UID", options.uid, meta["uid"])
    version = options.resource_version
    _precondition(resource, meta, "ResourceVersion", version, meta["resourceVersion"])
    grace = _grace(obj, options) if resource == "pods" else 0
    deadline: datetime | None = now + timedelta(seconds=grace)
    if "deletionTimestamp" in meta and grace:
        grace, deadline = _shortened(meta, options, now)
    if options.dry_run or deadline is None:
        return obj
    if options.orphan:
        _orphan(store, meta["uid"], now)
    if grace == 0 and not meta.get("finalizers"):
        return store.remove(resource, *key_of(obj), now=now)
    first = "deletionTimestamp" not in meta
    told = {**meta, "deletionGracePeriodSeconds": grace}
    told["deletionTimestamp"] = stamp(deadline) if first or grace else _no_later(meta, now)
    if "generation" in meta:
        told["generation"] = meta["generation"] + first
    return store.replace(resource, {**obj, "metadata": told}, now=now)


def _orphan(store: Store, uid: str, now: datetime) -> None:
    """Take a controller's name off what it owns, so that it stays behind."""
    for resource in ("pods", "replicasets", "jobs"):
        for obj in list(store.all(resource)):
            owners = obj["metadata"].get("ownerReferences") or []
            others = [owner for owner in owners if owner["uid"] != uid]
            if len(others) < len(owners):
                meta = {**obj["metadata"], "ownerReferences": others}
                store.replace(resource, {**obj, "metadata": meta}, now=now)


def _grace(pod: Json, options: DeleteOptions) -> int:
    if not look(pod, "spec", "nodeName") or is_finished(pod):
        return 0
    own = look(pod, "spec", "terminationGracePeriodSeconds", default=30)
    asked = own if options.grace_seconds is None else options.grace_seconds
    return int(asked) if asked >= 0 else 1


def _shortened(meta: Json, options: DeleteOptions, now: datetime) -> tuple[int, datetime | None]:
    """Return grace and end of a pod that is already going; no end where nothing changes."""
    before = meta["deletionGracePeriodSeconds"]
    if options.grace_seconds is None or options.grace_seconds >= before:
        return before, None
    grace = options.grace_seconds if options.grace_seconds >= 0 else 1
    begun = moment(meta["deletionTimestamp"]) - timedelta(seconds=before)
    deadline = begun + timedelta(seconds=grace)
    return (grace, deadline) if deadline >= now else (1, now)


def _no_later(meta: Json, now: datetime) -> str:
    return stamp(min(now, moment(meta["deletionTimestamp"])))


def _precondition(resource: str, meta: Json, word: str, wanted: str | None, found: str) -> None:
    if wanted and wanted != found:
        why = (
            f"the {word} in the precondition ({wanted}) does not match the {word} in record "
            f"({found}). The object might have been {'deleted and then recreated' if word == 'UID' else 'modified'}"
        )
        raise conflict(BY_PLURAL[resource], meta["name"], why)
