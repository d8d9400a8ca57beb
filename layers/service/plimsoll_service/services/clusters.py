"""The rows of a tenant's clusters, of which a page of clusters is one query.

A row is the document `cluster#ID` of the tenant. Each token of an agent renews it, `metrics` and `advice` write their own
columns. Who writes reads first and writes over that version, so that no writer takes back what another wrote. Where
there is no row nobody but a token makes one: what is late must not bring a removed tenant back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from plimsoll.domain.errors import Conflict, Temporary
from plimsoll_service.domain.access import Principal, Role
from plimsoll_service.domain.snapshots import Arrival, Span
from plimsoll_service.services.paging import Filter, PageRequest, cut
from plimsoll_service.services.ports import Document, Members, TenantData
from plimsoll_service.services.stored import read
from plimsoll_service.wire import clusters as wire
from plimsoll_service.wire.documents import encode
from plimsoll_service.wire.views import Cluster

CLUSTER: Final = "cluster#"
MEMBER: Final = "member#"
SILENCE: Final = timedelta(minutes=10)
"""For how long an agent, which sends a snapshot each minute, may send none."""
MOST_CLUSTERS: Final = 1000
"""Of an answer for clients that read no pages."""
ATTEMPTS: Final = 5
_ALL: Final = 10**6
"""Of the rows of a tenant: DynamoDB returns thousands of them at once."""

_NAMED: Final = Filter(description="how the name of the cluster begins")
_MODE: Final = Filter(
    description="the mode that the agent tells; `read-only` leaves out those that tell none",
    values=("act", "read-only"),
)
_ONLY: Final[Mapping[str, Callable[[wire.ClusterRow], bool]]] = {
    "silent": lambda row: row.silent,
    "interrupted": lambda row: bool(row.seen and row.seen.open_interruptions),
    "floors-missed": lambda row: bool(row.advised and row.advised.floors_missed),
    "lines-broken": lambda row: bool(row.advised and row.advised.lines_broken),
    "decisions": lambda row: bool(row.advised and row.advised.decisions),
}
CLUSTER_FILTERS: Final[Mapping[str, Filter]] = {
    "name": _NAMED,
    "mode": _MODE,
    "only": Filter(description="clusters of which that is told", values=tuple(_ONLY)),
}
AGENT_FILTERS: Final[Mapping[str, Filter]] = {
    "name": _NAMED,
    "mode": _MODE,
    "only": Filter(description="agents that are silent", values=("silent",)),
}
MEMBER_FILTERS: Final[Mapping[str, Filter]] = {
    "role": Filter(description="what somebody came in as", values=tuple(Role)),
}


type Sees = Callable[[str], bool]
"""Whether somebody may see a cluster, by its id."""


def everything(_: str) -> bool:
    """See every cluster of the tenant."""
    return True


class _Row(Struct, frozen=True, kw_only=True):
    name: str
    seen: wire.SeenColumns | None = None
    advised: wire.AdvisedColumns | None = None
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


def known_clusters(data: TenantData) -> Sequence[tuple[str, str]]:
    """Return the clusters of a tenant, by id: id and name."""
    found = data.list("", CLUSTER, f"{CLUSTER}~", limit=_ALL)
    return [(each.key.removeprefix(CLUSTER), _read(data, each).name) for each in found]


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


def clusters(
    data: TenantData, asked: PageRequest, now: datetime, sees: Sees = everything
) -> wire.Clusters:
    """Return a page of the clusters that somebody sees by their ids, with sums over all that pass the filters."""
    rows = [row for row in _rows(data, now) if sees(row.id)]
    chosen = [row for row in rows if _passes(row, asked)]
    page = cut(chosen, asked, key=_key)
    # An older client reads no pages, and has to find each cluster by its name.
    by_id = [] if asked.explicit else sorted(rows, key=lambda row: row.id)
    return wire.Clusters(
        items=page.items,
        next=page.next,
        as_of=now,
        counts=_counts(chosen),
        clusters=tuple(_for_older_clients(row, now) for row in by_id[:MOST_CLUSTERS]),
        left_out=len(by_id[MOST_CLUSTERS:]),
    )


def agents(
    data: TenantData, asked: PageRequest, now: datetime, sees: Sees = everything
) -> wire.Agents:
    """Return a page of the agents of the clusters that somebody sees."""
    chosen = [row for row in _rows(data, now) if sees(row.id) and _passes(row, asked)]
    page = cut(chosen, asked, key=_key)
    return wire.Agents(
        items=tuple(
            wire.AgentRow(
                cluster_id=row.id,
                name=row.name,
                silent=row.silent,
                last_seen=row.seen.received_at if row.seen else None,
                agent=row.seen.agent if row.seen else None,
            )
            for row in page.items
        ),
        next=page.next,
        as_of=now,
        silent=sum(row.silent for row in chosen),
    )


def members(people: Members, tenant: str, asked: PageRequest, now: datetime) -> wire.Members:
    """Return a page of who was let in, by subject."""
    first = asked.filters.get("role", "")[:1]  # a subject begins with the letter of its role
    after = asked.after.removeprefix(MEMBER)
    found = people.of_tenant(tenant, max(first, after), f"{first}~", limit=asked.limit + 2)
    page = cut(found, asked, key=lambda each: f"{MEMBER}{each.subject}")
    return wire.Members(items=tuple(map(_member, page.items)), next=page.next, as_of=now)


def _member(each: Principal) -> wire.Member:
    return wire.Member(subject=each.subject, role=each.role, name=each.name, kid=each.kid)


def _rows(data: TenantData, now: datetime) -> Sequence[wire.ClusterRow]:
    """Return all rows of a tenant, by name: one query for some thousand of them."""
    found = data.list("", CLUSTER, f"{CLUSTER}~", limit=_ALL)
    rows = ((each.key.removeprefix(CLUSTER), _read(data, each)) for each in found)
    return sorted(
        (
            wire.ClusterRow(
                id=id_,
                name=row.name,
                silent=row.seen is None or now - row.seen.received_at > SILENCE,
                seen=row.seen,
                advised=row.advised,
            )
            for id_, row in rows
        ),
        key=_key,
    )


def _key(row: wire.ClusterRow) -> str:
    return f"{CLUSTER}{row.name}#{row.id}"


def _passes(row: wire.ClusterRow, asked: PageRequest) -> bool:
    mode, only = asked.filters.get("mode"), asked.filters.get("only")
    agent = row.seen.agent if row.seen else None
    return (
        row.name.startswith(asked.filters.get("name", ""))
        and (mode is None or (agent is not None and agent.mode == mode))
        and (only is None or _ONLY[only](row))
    )


def _counts(rows: Iterable[wire.ClusterRow]) -> wire.ClusterCounts:
    told = list(rows)
    seen = [row.seen for row in told if row.seen]
    advised = [row.advised for row in told if row.advised]
    priced = [each for each in advised if each.monthly is not None]
    return wire.ClusterCounts(
        clusters=len(told),
        silent=sum(row.silent for row in told),
        interrupted=sum(bool(each.open_interruptions) for each in seen),
        nodes=sum(each.nodes for each in seen),
        spot=sum(each.spot for each in seen),
        floors_missed=sum(each.floors_missed for each in advised),
        lines_broken=sum(each.lines_broken or 0 for each in advised),
        decisions=sum(each.decisions for each in advised),
        monthly=sum(each.monthly or 0.0 for each in priced),
        saveable=sum(each.saveable or 0.0 for each in priced),
        unpriced=len(told) - len(priced),
    )


def _for_older_clients(row: wire.ClusterRow, now: datetime) -> Cluster:
    # A cluster that fell silent before its row had columns is known by its analysis alone.
    told = row.seen or row.advised
    taken = None if told is None else told.taken_at
    age = None if taken is None else max(0, int((now - taken).total_seconds()))
    return Cluster(id=row.id, name=row.name, taken_at=taken, age_s=age)


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
