"""What the service knows of a tenant: its clusters, their newest snapshots, and what they used before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from plimsoll_service.domain.advice import LastAdvice
from plimsoll_service.domain.snapshots import Newest, Rollup, Span, WorkloadUsage, combined_rollup
from plimsoll_service.services.ports import TenantData
from plimsoll_service.wire.snapshot import Snapshot, apply, decode

NEWEST: Final = "newest"
"""The document that says which snapshot counts."""
ADVISED: Final = "advised"
"""The document that says of the last run of the advice."""

_CLUSTER: Final = "cluster#"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The newest snapshot of a cluster, whole."""

    snapshot: Snapshot
    received_at: datetime


def known_clusters(data: TenantData) -> Sequence[tuple[str, str]]:
    """Return the clusters of a tenant, by id: id and name."""
    found = data.list("", _CLUSTER, f"{_CLUSTER}~")
    return [(each.key.removeprefix(_CLUSTER), each.body.decode()) for each in found]


def remember_cluster(data: TenantData, cluster: str, name: str) -> None:
    """Write down that a tenant has a cluster. Again is once."""
    key = f"{_CLUSTER}{cluster}"
    if data.get("", key) is None:
        data.put("", key, name.encode())


def has_cluster(data: TenantData, cluster: str) -> bool:
    """Whether a tenant has a cluster."""
    return data.get("", f"{_CLUSTER}{cluster}") is not None


def last_heard(data: TenantData, cluster: str) -> datetime | None:
    """Return when the newest snapshot of a cluster came, even if its time is over; None: none came yet."""
    found = data.get(cluster, NEWEST)
    return None if found is None else msgspec.json.decode(found.body, type=Newest).received_at


def newest(data: TenantData, cluster: str) -> Known | None:
    """Return the newest snapshot of a cluster, or None: none came yet, or its time is over."""
    found = data.get(cluster, NEWEST)
    if found is None:
        return None
    said = msgspec.json.decode(found.body, type=Newest)
    body = data.get_snapshot(cluster, said.epoch, said.sequence)
    if body is None:
        return None
    change = decode(body)
    if change.full:
        return Known(snapshot=change, received_at=said.received_at)
    base = data.get_snapshot(cluster, said.epoch, said.base)
    if base is None:
        return None
    return Known(snapshot=apply(decode(base), change), received_at=said.received_at)


def rollups(
    data: TenantData, cluster: str, span: Span, since: datetime, until: datetime
) -> tuple[Rollup, ...]:
    """Return the rollups of a span whose start lies between two times, in their order."""
    found = data.list(cluster, span.key(since), span.key(until), limit=10_000)
    return tuple(msgspec.json.decode(d.body, type=Rollup) for d in found)


def usage(
    data: TenantData, cluster: str, since: datetime, until: datetime
) -> Mapping[str, WorkloadUsage]:
    """Return what the pods of each workload used between two times, by the workload's uid.

    Whole hours count. The one of the newest snapshot is made an hour by a later one, and counts by its
    minutes until then.
    """
    found = data.get(cluster, NEWEST)
    if found is None:
        return {}
    taken = msgspec.json.decode(found.body, type=Newest).taken_at
    current = Span.HOUR.start(taken)
    hours = [h for h in rollups(data, cluster, Span.HOUR, since, until) if h.start != current]
    minutes = rollups(data, cluster, Span.MINUTE, max(since, current), min(until, taken))
    made = combined_rollup((*hours, *minutes), Span.DAY)
    return made.usage if made else {}


def last_advice(data: TenantData, cluster: str) -> tuple[LastAdvice | None, int]:
    """Return the last run of the advice about a cluster, and the version of its document."""
    found = data.get(cluster, ADVISED)
    if found is None:
        return None, 0
    return msgspec.json.decode(found.body, type=LastAdvice), found.version
