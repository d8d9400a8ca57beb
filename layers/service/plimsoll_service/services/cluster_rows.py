"""The rows of a tenant's clusters, of which a list is one query.

A row is the document `cluster#ID` of the tenant. Each token of an agent renews it, `metrics` and `advice` write their
own columns, and a decision writes how many recommendations are open. Who writes reads first and writes over that
version, so that no writer takes back what another wrote. Where there is no row nobody but a token makes one: what is
late must not bring a removed tenant back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from plimsoll.domain.errors import Conflict, Temporary
from plimsoll_service.domain.snapshots import Arrival, Span
from plimsoll_service.services.paging import Filter
from plimsoll_service.services.ports import Document, TenantData
from plimsoll_service.services.stored import read
from plimsoll_service.wire import clusters as wire
from plimsoll_service.wire.documents import encode

CLUSTER: Final = "cluster#"
NAMED: Final = Filter(description="how the name of the cluster begins")
SILENCE: Final = timedelta(minutes=10)
"""For how long an agent, which sends a snapshot each minute, may send none."""
ATTEMPTS: Final = 5
_ALL: Final = 10**6
"""Of the rows of a tenant: DynamoDB returns thousands of them at once."""

type Sees = Callable[[str], bool]
"""Whether somebody may see a cluster, by its id."""


def everything(_: str) -> bool:
    """See every cluster of the tenant."""
    return True


class _Row(Struct, frozen=True, kw_only=True):
    name: str
    seen: wire.SeenColumns | None = None
    advised: wire.AdvisedColumns | None = None
    saved: wire.SavedColumns | None = None
    epoch: str = ""
    """Of the snapshot that `seen` was written of."""
    sequence: int = 0

    def is_after(self, arrival: Arrival) -> bool:
        """Whether the row tells of a later snapshot. Of two of one epoch their numbers decide, as in `Newest`."""
        if self.seen is None:
            return False
        if self.epoch == arrival.epoch:
            return self.sequence > arrival.sequence
        return self.seen.received_at > arrival.received_at


def remember_cluster(data: TenantData, cluster: str, name: str, now: datetime) -> None:
    """Write down that a tenant has a cluster, for as long as its days are kept. Each token of its agent renews it."""
    found = data.get("", f"{CLUSTER}{cluster}")
    row = None if found is None else _read(data, found)
    body = encode(_Row(name=name) if row is None else replace(row, name=name))
    with suppress(Conflict):  # another renews it
        _put(data, cluster, body, found.version if found else 0, now)


def has_cluster(data: TenantData, cluster: str) -> bool:
    """Whether a tenant has a cluster."""
    return data.get("", f"{CLUSTER}{cluster}") is not None


def tell_seen(data: TenantData, arrival: Arrival, seen: wire.SeenColumns, now: datetime) -> None:
    """Write what the newest snapshot tells; an older one than the row has changes nothing.

    Raises:
        Temporary: others write the row, again and again.
    """

    def told(row: _Row) -> _Row:
        if row.is_after(arrival):
            return row
        return replace(row, seen=seen, epoch=arrival.epoch, sequence=arrival.sequence)

    _change(data, arrival.cluster, told, now)


def tell_advised(
    data: TenantData, cluster: str, advised: wire.AdvisedColumns, now: datetime
) -> None:
    """Write what an analysis found; one of an older snapshot than the row has changes nothing.

    Raises:
        Temporary: others write the row, again and again.
    """

    def told(row: _Row) -> _Row:
        is_older = row.advised is not None and row.advised.taken_at > advised.taken_at
        return row if is_older else replace(row, advised=advised)

    _change(data, cluster, told, now)


def tell_decisions(data: TenantData, cluster: str, decisions: int, now: datetime) -> None:
    """Write how many recommendations are open after a decision, until the next analysis counts them.

    Raises:
        Temporary: others write the row, again and again.
    """

    def told(row: _Row) -> _Row:
        if row.advised is None:
            return row
        return replace(row, advised=replace(row.advised, decisions=decisions))

    _change(data, cluster, told, now)


def tell_saved(
    data: TenantData,
    cluster: str,
    until: date,
    told: Callable[[], wire.SavedColumns],
    now: datetime,
) -> None:
    """Write what the whole days up to one show was saved, unless the row tells of that day already.

    Raises:
        Temporary: others write the row, again and again.
    """

    def after(row: _Row) -> _Row:
        is_told = row.saved is not None and row.saved.until >= until
        return row if is_told else replace(row, saved=told())

    _change(data, cluster, after, now)


def cluster_rows(
    data: TenantData, now: datetime, sees: Sees = everything
) -> Sequence[wire.ClusterRow]:
    """Return the rows of the clusters that somebody sees, by name: one query for some thousand of them."""
    found = data.list("", CLUSTER, f"{CLUSTER}~", limit=_ALL)
    rows = (_told(data, each, now) for each in found)
    return sorted((row for row in rows if sees(row.id)), key=row_key)


def cluster_row(data: TenantData, cluster: str, now: datetime) -> wire.ClusterRow | None:
    """Return the row of a cluster; None: the tenant has no such cluster."""
    found = data.get("", f"{CLUSTER}{cluster}")
    return None if found is None else _told(data, found, now)


def row_key(row: wire.ClusterRow) -> str:
    """Return the sort key of a row in lists."""
    return f"{CLUSTER}{row.name}#{row.id}"


def _told(data: TenantData, found: Document, now: datetime) -> wire.ClusterRow:
    row = _read(data, found)
    return wire.ClusterRow(
        id=found.key.removeprefix(CLUSTER),
        name=row.name,
        silent=row.seen is None or now - row.seen.received_at > SILENCE,
        seen=row.seen,
        advised=row.advised,
        saved=row.saved,
    )


def _change(data: TenantData, cluster: str, change: Callable[[_Row], _Row], now: datetime) -> None:
    for _ in range(ATTEMPTS):
        found = data.get("", f"{CLUSTER}{cluster}")
        if found is None:
            return
        before = _read(data, found)
        after = change(before)
        if after == before:
            return
        with suppress(Conflict):
            _put(data, cluster, encode(after), found.version, now)
            return
    raise Temporary(f"others wrote the row of {cluster} {ATTEMPTS} times meanwhile")


def _put(data: TenantData, cluster: str, body: bytes, version: int, now: datetime) -> None:
    expires = now + Span.DAY.kept
    data.put("", f"{CLUSTER}{cluster}", body, version=version, expires=expires)


def _read(data: TenantData, found: Document) -> _Row:
    if not found.body.startswith(b"{"):  # of version 0.2 and before: the name alone
        return _Row(name=found.body.decode(errors="replace"))
    return read(data, "", found, _Row) or _Row(name=found.key.removeprefix(CLUSTER))
