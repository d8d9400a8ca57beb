"""Pages of the recommendations of a cluster, the one that saves most first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from math import floor
from typing import Final, get_args

from plimsoll_service.services.paging import Filter, PageRequest, cut
from plimsoll_service.services.ports import TenantData
from plimsoll_service.services.recommendations import recommendations
from plimsoll_service.wire.advice import Kind, Recommendation, RecommendationPage, State

RECOMMENDATION: Final = "recommendation#"
RECOMMENDATION_FILTERS: Final[Mapping[str, Filter]] = {
    "state": Filter(description="their state", values=get_args(State.__value__)),
    "kind": Filter(description="their kind", values=get_args(Kind.__value__)),
}
_MOST_CENTS: Final = 10**14
"""Beyond what any cluster costs: recommendations that save more are ordered by their ids."""


def recommendation_page(
    data: TenantData, cluster: str, asked: PageRequest, now: datetime
) -> RecommendationPage:
    """Return a page of the recommendations of a cluster, with their number by state over all that pass the filters."""
    kept = recommendations(data, cluster)
    wanted = asked.filters.items()
    chosen = [
        each
        for each in kept.recommendations
        if all(getattr(each, name) == value for name, value in wanted)
    ]
    page = cut(sorted(chosen, key=_key), asked, key=_key)
    return RecommendationPage(
        items=page.items,
        next=page.next,
        as_of=now,
        counts=dict(Counter(each.state for each in chosen)),
        recommendations=() if asked.explicit else kept.recommendations,
        left_out=kept.left_out,
    )


def _key(each: Recommendation) -> str:
    cents = floor(max(-_MOST_CENTS, min(_MOST_CENTS, each.monthly * 100)))
    return f"{RECOMMENDATION}{_MOST_CENTS - cents:016d}#{each.id}"
