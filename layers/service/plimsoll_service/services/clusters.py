"""The lists of clusters, agents and members, and what they count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final

from plimsoll_service.domain.access import Principal, Role
from plimsoll_service.services.cluster_rows import NAMED, Sees, cluster_rows, everything, row_key
from plimsoll_service.services.paging import Filter, PageRequest, cut
from plimsoll_service.services.ports import Members, TenantData
from plimsoll_service.wire import clusters as wire

MEMBER: Final = "member#"
MOST_CLUSTERS: Final = 1000
"""Of an answer for clients that read no pages."""

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
    "name": NAMED,
    "mode": _MODE,
    "only": Filter(description="clusters of which that is told", values=tuple(_ONLY)),
}
AGENT_FILTERS: Final[Mapping[str, Filter]] = {
    "name": NAMED,
    "mode": _MODE,
    "only": Filter(description="agents that are silent", values=("silent",)),
}
MEMBER_FILTERS: Final[Mapping[str, Filter]] = {
    "role": Filter(description="what somebody came in as", values=tuple(Role)),
}


def clusters(
    data: TenantData, asked: PageRequest, now: datetime, sees: Sees = everything
) -> wire.Clusters:
    """Return a page of the clusters that somebody sees by their ids, with sums over all that pass the filters."""
    rows = cluster_rows(data, now, sees)
    chosen = [row for row in rows if _passes(row, asked)]
    page = cut(chosen, asked, key=row_key)
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
    chosen = [row for row in cluster_rows(data, now, sees) if _passes(row, asked)]
    page = cut(chosen, asked, key=row_key)
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


def _for_older_clients(row: wire.ClusterRow, now: datetime) -> wire.Cluster:
    # A cluster that fell silent before its row had columns is known by its analysis alone.
    told = row.seen or row.advised
    taken = None if told is None else told.taken_at
    age = None if taken is None else max(0, int((now - taken).total_seconds()))
    return wire.Cluster(id=row.id, name=row.name, taken_at=taken, age_s=age)
