"""Reports of interruptions, by pages, of the clusters that the registry binds to an agent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.domain.errors import NotFound
from plimsoll.domain.registry import Cluster, ClusterKind
from plimsoll.domain.reports import Report
from plimsoll_service.services.interruption_stack import InterruptionStack
from plimsoll_service.services.paging import MOST_ROWS_READ, page_request
from plimsoll_service.services.report_pages import REPORT, REPORT_FILTERS, report_page
from plimsoll_service.wire.reports import ReportPage
from plimsoll_simulation.fake_aws.stores import MemoryFrames, MemoryRegistry, MemoryReports

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.fixture
def reports() -> MemoryReports:
    return MemoryReports()


@pytest.fixture
def stack(reports: MemoryReports) -> InterruptionStack:
    """Two clusters, each bound to the agent of another tenant."""
    registry = MemoryRegistry()
    for name, agent in (("harbor", "a-acme"), ("quay", "a-globex")):
        registry.add(
            Cluster(name=name, kind=ClusterKind.EKS, region="us-east-1", added=NOW, agent=agent)
        )
    return InterruptionStack(registry=registry, frames=MemoryFrames(), reports=reports)


def told(reports: MemoryReports, number: int, cluster: str = "harbor", **more: Any) -> None:
    noticed = NOW - timedelta(minutes=number // 2)  # two at a time have the same time
    reports.merge(
        Report(
            **{
                "interruption": f"i-{number}@x",
                "cluster": cluster,
                "node": f"n-{number}",
                "kind": "spot",
                "noticed": noticed,
                **more,
            }
        )
    )


def read(stack: InterruptionStack | None, agent: str = "a-acme", **query: str) -> ReportPage:
    asked = page_request(query, prefix=REPORT, filters=REPORT_FILTERS)
    return report_page(stack, agent, asked, NOW)


def test_every_report_is_on_one_page_the_newest_first(stack, reports):
    for number in range(7):
        told(reports, number)
    pages, after = list[list[str]](), dict[str, str]()
    while True:
        page = read(stack, limit="3", **after)
        assert page.counts == {"under way": 7}
        pages.append([each.interruption for each in page.items])
        if page.next is None:
            break
        after = {"after": page.next}
    assert pages == [
        ["i-1@x", "i-0@x", "i-3@x"],
        ["i-2@x", "i-5@x", "i-4@x"],
        ["i-6@x"],
    ]


def test_filters_are_counted_on_the_server(stack, reports):
    told(reports, 1, killed=("shop/web-1", "shop/web-2"), below_floor={"shop/web": 1})
    told(reports, 2, below_floor={"shop/web": 1}, kind="rebalance")
    told(reports, 3, overruled={"shop/web-1": "429"}, added={"g@1": 2, "g@2": -1})
    told(reports, 4, closed=NOW)
    assert read(stack).counts == {
        "killed": 1,
        "below floor": 1,
        "past a budget": 1,
        "unhurt": 1,
    }
    for query, found in (
        ({"outcome": "killed"}, ["i-1@x"]),
        ({"kind": "rebalance"}, ["i-2@x"]),
        ({"node": "n-4"}, ["i-4@x"]),
    ):
        page = read(stack, **query)
        assert [each.interruption for each in page.items] == found
        assert sum(page.counts.values()) == 1
    killed, added = read(stack, outcome="killed"), read(stack, outcome="past a budget")
    assert (killed.items[0].killed, killed.items[0].below_floor) == (2, 1)
    assert added.items[0].added == 2


def test_a_report_is_seen_by_the_tenant_whose_agent_the_registry_names(stack, reports):
    told(reports, 1, "harbor")
    told(reports, 2, "quay")
    assert [each.interruption for each in read(stack, "a-acme").items] == ["i-1@x"]
    assert [each.interruption for each in read(stack, "a-globex").items] == ["i-2@x"]


@pytest.mark.parametrize("configured", [True, False])
def test_of_a_cluster_that_is_bound_to_no_agent_the_cure_is_named(stack, configured):
    with pytest.raises(NotFound, match="plimsoll clusters set NAME --agent a-other"):
        read(stack if configured else None, "a-other")


def test_beyond_the_newest_thousand_the_page_says_that_more_are_kept(stack, reports):
    for number in range(MOST_ROWS_READ + 1):
        told(reports, number)
    page = read(stack, limit="1")
    assert (sum(page.counts.values()), page.complete) == (MOST_ROWS_READ, False)
