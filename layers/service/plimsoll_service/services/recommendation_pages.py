"""Pages of recommendations: of one cluster, and of all clusters that somebody sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import floor
from typing import Final, get_args

from plimsoll_service.services.cluster_rows import NAMED, Sees, cluster_rows
from plimsoll_service.services.kept_advice import read_recommendations
from plimsoll_service.services.paging import Filter, PageRequest, Rows, after_of, cut
from plimsoll_service.services.ports import TenantData
from plimsoll_service.wire.advice import (
    Kind,
    Recommendation,
    RecommendationPage,
    Recommendations,
    State,
)
from plimsoll_service.wire.clusters import ClusterRow

RECOMMENDATION: Final = "recommendation#"
RECOMMENDATION_FILTERS: Final[Mapping[str, Filter]] = {
    "state": Filter(description="their state", values=get_args(State.__value__)),
    "kind": Filter(description="their kind", values=get_args(Kind.__value__)),
}
DECISION: Final = "decision#"
DECISION_FILTERS: Final[Mapping[str, Filter]] = {
    **RECOMMENDATION_FILTERS,
    "name": NAMED,
}
MOST_CLUSTERS_READ: Final = 50
"""For one page of all clusters: the recommendations of a cluster are one document."""
_MOST_CENTS: Final = 10**14
"""Beyond what any cluster costs: recommendations that save more are ordered by their ids."""


def recommendation_page(
    data: TenantData, cluster: str, asked: PageRequest, now: datetime
) -> RecommendationPage:
    """Return a page of the recommendations of a cluster, with their number by state over all that pass the filters."""
    kept, _ = read_recommendations(data, cluster)
    chosen = _chosen(kept, asked)
    page = cut(chosen, asked, key=_key)
    # An older client reads no pages and no filters.
    every = () if asked.explicit else tuple(sorted(kept.recommendations, key=_key))
    return RecommendationPage(
        items=page.items,
        next=page.next,
        as_of=now,
        counts=dict(Counter(each.state for each in chosen)),
        recommendations=every,
        left_out=kept.left_out,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A recommendation, and which cluster it is about."""

    cluster: ClusterRow
    each: Recommendation


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions(Rows[Decision]):
    """A page of the recommendations of all clusters."""

    waiting: int
    """Open ones of all clusters whose name passes the filter, by their last analysis."""
    clusters: int
    """Clusters that these are of."""


def decisions(data: TenantData, asked: PageRequest, now: datetime, sees: Sees) -> Decisions:
    """Return a page of the recommendations of the clusters that somebody sees.

    They are in the order of the clusters' names, and in each the one that saves most comes first. The rows of the
    clusters tell which of them have open ones; for other states each cluster is read. A page ends early after
    MOST_CLUSTERS_READ clusters, and says where to read on.
    """
    named = asked.filters.get("name", "")
    rows = [row for row in cluster_rows(data, now, sees) if row.name.startswith(named)]
    open_ones = [row for row in rows if row.advised and row.advised.decisions]
    of = open_ones if asked.filters.get("state") == "open" else rows
    page = _walked(data, of, asked)
    return Decisions(
        items=page.items,
        next=page.next,
        waiting=sum(row.advised.decisions for row in open_ones if row.advised),
        clusters=len(open_ones),
    )


def _walked(data: TenantData, rows: Iterable[ClusterRow], asked: PageRequest) -> Rows[Decision]:
    found, last = list[Decision](), ""
    ahead = [row for row in rows if _end(row) > asked.after]
    for number, row in enumerate(ahead):
        if number == MOST_CLUSTERS_READ:
            return Rows(items=tuple(found), next=after_of(last))
        kept, _ = read_recommendations(data, row.id)
        for each in _chosen(kept, asked):
            key = f"{_start(row)}{_key(each)}"
            if key <= asked.after:
                continue
            if len(found) == asked.limit:
                return Rows(items=tuple(found), next=after_of(last))
            found.append(Decision(cluster=row, each=each))
            last = key
        last = _end(row)
    return Rows(items=tuple(found), next=None)


def _start(row: ClusterRow) -> str:
    return f"{DECISION}{row.name}#{row.id}#"


def _end(row: ClusterRow) -> str:
    return f"{_start(row)}~"


def _chosen(kept: Recommendations, asked: PageRequest) -> list[Recommendation]:
    wanted = {name: asked.filters[name] for name in RECOMMENDATION_FILTERS if name in asked.filters}
    chosen = (
        each
        for each in kept.recommendations
        if all(getattr(each, name) == value for name, value in wanted.items())
    )
    return sorted(chosen, key=_key)


def _key(each: Recommendation) -> str:
    cents = floor(max(-_MOST_CENTS, min(_MOST_CENTS, each.monthly * 100)))
    return f"{RECOMMENDATION}{_MOST_CENTS - cents:016d}#{each.id}"
