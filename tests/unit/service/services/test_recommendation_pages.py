"""Pages of the recommendations of all clusters: each once, and few reads a page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from plimsoll_service.services.cluster_rows import remember_cluster, tell_advised
from plimsoll_service.services.kept_advice import RECOMMENDATIONS
from plimsoll_service.services.paging import page_request
from plimsoll_service.services.recommendation_pages import (
    DECISION,
    DECISION_FILTERS,
    MOST_CLUSTERS_READ,
    Decisions,
    decisions,
)
from plimsoll_service.wire.advice import Recommendations
from plimsoll_service.wire.clusters import AdvisedColumns
from plimsoll_service.wire.documents import encode
from plimsoll_simulation.fake_aws.service_stores import MemoryTenantData
from tests.support.hosted_consoles import a_recommendation

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
NAMES = [f"c-{number:03}" for number in range(MOST_CLUSTERS_READ + 20)]


class Clock:
    def now(self) -> datetime:
        return NOW


@pytest.fixture
def data() -> MemoryTenantData:
    """Clusters of which every third has two open recommendations, and the last one a third that is done."""
    made = MemoryTenantData(Clock())
    for number, name in enumerate(NAMES):
        remember_cluster(made, f"a-{name}", name, NOW)
        kept = [a_recommendation(f"r-{name}-{n}", monthly=float(n)) for n in range(2)]
        kept = kept if number % 3 == 0 else []
        told = AdvisedColumns(taken_at=NOW, floors=0, floors_missed=0, decisions=len(kept))
        tell_advised(made, f"a-{name}", told, NOW)
        if name == NAMES[-1]:
            kept.append(a_recommendation("r-done", state="done"))
        body = encode(Recommendations(recommendations=tuple(kept)))
        made.put(f"a-{name}", RECOMMENDATIONS, body, expires=NOW + timedelta(days=1))
    return made


def pages(data: MemoryTenantData, **query: str) -> Iterator[Decisions]:
    after: dict[str, str] = {}
    while True:
        asked = page_request(query | after, prefix=DECISION, filters=DECISION_FILTERS)
        page = decisions(data, asked, NOW, lambda cluster: cluster != "a-c-000")
        yield page
        if page.next is None:
            return
        after = {"after": page.next}


@pytest.mark.parametrize("limit", ["1", "3", "200"])
def test_each_recommendation_is_on_one_page_the_one_that_saves_most_first(data, limit):
    found = list(pages(data, state="open", limit=limit))
    wanted = [f"r-{name}-{n}" for name in NAMES[3::3] for n in (1, 0)]
    assert [each.each.id for page in found for each in page.items] == wanted
    assert {(page.waiting, page.clusters) for page in found} == {(len(wanted), len(wanted) // 2)}


def test_a_page_reads_so_many_clusters_and_says_where_to_read_on(data):
    first, second = pages(data, state="done")
    assert (first.items, [each.each.id for each in second.items]) == ((), ["r-done"])


def test_what_is_decided_between_two_pages_hides_nothing_else(data):
    found = pages(data, state="open", limit="1")
    shown = [next(found).items[0].each.id]
    gone = data.get("a-c-003", RECOMMENDATIONS)
    assert gone
    empty = encode(Recommendations(recommendations=()))
    data.put("a-c-003", RECOMMENDATIONS, empty, version=gone.version, expires=NOW)
    shown += [each.each.id for page in found for each in page.items]
    assert shown[:2] == ["r-c-003-1", "r-c-006-1"]
    assert len(shown) == len({*shown}) == 2 * len(NAMES[3::3]) - 1
