"""What the service knows of a tenant: its clusters, their newest snapshots, and what they used before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain
from typing import Final

from plimsoll_service.domain.advice import LastAdvice
from plimsoll_service.domain.snapshots import (
    Newest,
    Rollup,
    Span,
    WorkloadUsage,
    combined_rollup,
    unpacked,
)
from plimsoll_service.services.ports import TenantData
from plimsoll_service.services.stored import read, stored
from plimsoll_service.wire.documents import Malformed
from plimsoll_service.wire.snapshot import Snapshot, apply, decode, decode_objects, encode

NEWEST: Final = "newest"
"""The document that says which snapshot counts."""
ADVISED: Final = "advised"
"""The document that says of the last run of the advice."""
LAST: Final = "last-snapshot"
"""The document with the newest snapshot of a cluster that fell silent: the bucket keeps it for days only."""
SILENT: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The newest snapshot of a cluster, whole."""

    snapshot: Snapshot
    received_at: datetime


def newest_said(data: TenantData, cluster: str) -> Newest | None:
    """Return what is said of the newest snapshot of a cluster, even if its time is over; None: none came yet."""
    return stored(data, cluster, NEWEST, Newest)[0]


def newest(data: TenantData, cluster: str) -> Known | None:
    """Return the newest snapshot of a cluster, or None: none came yet, or its time is over."""
    said = newest_said(data, cluster)
    if said is None:
        return None
    snapshot = _whole(data, cluster, said) or _last(data, cluster, said)
    return Known(snapshot=snapshot, received_at=said.received_at) if snapshot else None


def keep_last(data: TenantData, cluster: str, known: Known, now: datetime) -> None:
    """Keep the newest snapshot of a cluster that fell silent, for as long as its days. Again is once.

    Raises:
        Conflict: another run keeps it.
    """
    if now - known.received_at <= SILENT:
        return
    found, body = data.get(cluster, LAST), encode(known.snapshot)
    if found is None or found.body != body:
        version, expires = found.version if found else 0, known.received_at + Span.DAY.kept
        data.put(cluster, LAST, body, version=version, expires=expires)


def _whole(data: TenantData, cluster: str, said: Newest) -> Snapshot | None:
    body = data.get_snapshot(cluster, said.epoch, said.sequence)
    if body is None:
        return None
    try:
        change = decode(body)
        if change.full:
            return change
        base = data.get_snapshot(cluster, said.epoch, said.base)
        return apply(decode_objects(base), change) if base is not None else None
    except Malformed as error:
        data.fault(cluster, f"{said.epoch} {said.sequence}", str(error))
        return None


def _last(data: TenantData, cluster: str, said: Newest) -> Snapshot | None:
    found = data.get(cluster, LAST)
    if found is None:
        return None
    try:
        kept = decode(found.body)
    except Malformed as error:
        data.fault(cluster, LAST, str(error))
        return None
    return kept if (kept.epoch, kept.sequence) == (said.epoch, said.sequence) else None


def rollups(
    data: TenantData, cluster: str, span: Span, since: datetime, until: datetime
) -> Iterator[Rollup]:
    """Yield the rollups of a span whose start lies between two times, in their order."""
    found = data.list(cluster, span.key(since), span.key(until), limit=10_000)
    read_back = (read(data, cluster, each, Rollup) for each in found)
    return (each for each in read_back if each is not None)


def usage(
    data: TenantData, known: Known, since: datetime, until: datetime
) -> tuple[Mapping[str, WorkloadUsage], int]:
    """Return what the pods of each workload of a cluster used between two times, and of how many nothing is kept.

    Whole hours count. The one of the newest snapshot is made an hour by a later one, and counts by its
    minutes until then. Workloads that are gone are left out, by their uid.
    """
    cluster, taken = known.snapshot.cluster_id, known.snapshot.taken_at
    current, uids = Span.HOUR.start(taken), {each.uid for each in known.snapshot.workloads}
    hours = (h for h in rollups(data, cluster, Span.HOUR, since, until) if h.start != current)
    minutes = rollups(data, cluster, Span.MINUTE, max(since, current), min(until, taken))
    parts = (
        replace(part, usage={uid: its for uid, its in part.usage.items() if uid in uids})
        for part in chain(hours, minutes)
    )
    made = combined_rollup(parts, Span.DAY)
    return (unpacked(made.usage), made.left_out) if made else ({}, 0)


def last_advice(data: TenantData, cluster: str) -> tuple[LastAdvice | None, int]:
    """Return the last run of the advice about a cluster, and the version of its document."""
    return stored(data, cluster, ADVISED, LastAdvice)
