"""The row of a cluster: each column by its writer, never older than it was, and pages of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest
from msgspec.structs import replace

from plimsoll.domain.errors import Conflict, Temporary
from plimsoll_service.domain.snapshots import Arrival, seen_columns
from plimsoll_service.services.cluster_rows import (
    CLUSTER,
    remember_cluster,
    tell_advised,
    tell_seen,
)
from plimsoll_service.services.clusters import (
    AGENT_FILTERS,
    CLUSTER_FILTERS,
    MOST_CLUSTERS,
    agents,
    clusters,
)
from plimsoll_service.services.paging import PageRequest, page_request
from plimsoll_service.wire.clusters import AdvisedColumns, ClusterRow, SeenColumns
from plimsoll_service.wire.snapshot import AgentState, Taint
from plimsoll_simulation.fake_aws.service_stores import MemoryTenantData
from tests.support.snapshots import wire_node, wire_snapshot

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
AGENT = AgentState(version="0.2.0", mode="act", policy="valid", spooled=2)
ADVISED = AdvisedColumns(
    taken_at=NOW,
    floors=3,
    floors_missed=1,
    lines=2,
    lines_broken=1,
    decisions=4,
    monthly=100.0,
    saveable=30.0,
)


@dataclass
class Clock:
    time: datetime = NOW

    def now(self) -> datetime:
        return self.time


def tenant(*names: str) -> MemoryTenantData:
    data = MemoryTenantData(Clock())
    for name in names:
        remember_cluster(data, f"a-{name}", name, NOW)
    return data


def seen(minute: int = 0, *, nodes: int = 2, agent: AgentState | None = AGENT) -> SeenColumns:
    at = NOW + minute * MINUTE
    return SeenColumns(
        taken_at=at, received_at=at, nodes=nodes, spot=1, open_interruptions=0, agent=agent
    )


def arrival(sequence: int, *, epoch: str = "e", cluster: str = "a-shop") -> Arrival:
    return Arrival(
        tenant="acme",
        cluster=cluster,
        epoch=epoch,
        sequence=sequence,
        base=0,
        received_at=NOW + sequence * MINUTE,
        digest="",
    )


def row(data: MemoryTenantData, now: datetime = NOW) -> ClusterRow:
    [found] = clusters(data, PageRequest(), now).items
    return found


def test_what_nobody_told_is_null_and_not_0():
    data = tenant("shop")
    assert row(data) == ClusterRow(id="a-shop", name="shop", silent=True)
    tell_seen(data, arrival(1), seen(1, agent=None), NOW)
    told = row(data)
    assert told.seen is not None
    assert (told.silent, told.seen.agent, told.advised) == (False, None, None)
    tell_advised(data, "a-shop", ADVISED, NOW)
    assert (row(data).seen, row(data).advised) == (seen(1, agent=None), ADVISED)


def test_snapshots_in_any_order_and_twice_leave_the_newest():
    told = [(arrival(n), seen(n, nodes=n)) for n in (1, 2, 3)]
    for order in permutations([*told, told[1]]):
        data = tenant("shop")
        for its, columns in order:
            tell_seen(data, its, columns, NOW)
        assert row(data).seen == seen(3, nodes=3)


def test_an_epoch_that_another_followed_does_not_come_back():
    data = tenant("shop")
    tell_seen(data, arrival(5, epoch="new"), seen(5), NOW)
    tell_seen(data, arrival(4, epoch="old"), seen(4), NOW)
    assert row(data).seen == seen(5)
    tell_seen(data, arrival(6, epoch="newer"), seen(6), NOW)
    assert row(data).seen == seen(6)


def test_an_analysis_of_an_older_snapshot_changes_nothing():
    data = tenant("shop")
    later = replace(ADVISED, taken_at=NOW + MINUTE, decisions=9)
    for each in (later, ADVISED, later):
        tell_advised(data, "a-shop", each, NOW)
    assert row(data).advised == later


def test_a_token_renews_the_row_and_keeps_what_others_wrote():
    data = tenant("shop")
    tell_seen(data, arrival(1), seen(1), NOW)
    tell_advised(data, "a-shop", ADVISED, NOW)
    remember_cluster(data, "a-shop", "shop", NOW)
    assert (row(data).seen, row(data).advised) == (seen(1), ADVISED)


def test_what_is_late_does_not_bring_a_removed_cluster_back():
    data = tenant()
    tell_seen(data, arrival(1), seen(1), NOW)
    tell_advised(data, "a-shop", ADVISED, NOW)
    assert clusters(data, PageRequest(), NOW).items == ()


def test_the_row_of_an_earlier_version_is_its_name_until_somebody_tells_more():
    data = MemoryTenantData(Clock())
    data.put("", f"{CLUSTER}a-shop", b"shop", expires=NOW + timedelta(days=1))
    assert row(data) == ClusterRow(id="a-shop", name="shop", silent=True)
    tell_seen(data, arrival(1), seen(1), NOW)
    assert (row(data).name, row(data).seen) == ("shop", seen(1))


def test_a_row_that_cannot_be_read_is_told_and_written_over():
    data = MemoryTenantData(Clock())
    data.put("", f"{CLUSTER}a-shop", b"{", expires=NOW + timedelta(days=1))
    assert row(data).name == "a-shop"
    assert data.faults
    remember_cluster(data, "a-shop", "shop", NOW)
    assert row(data).name == "shop"


@dataclass
class Contended:
    """Somebody else writes the row before each of so many writes."""

    data: MemoryTenantData
    times: int

    def __getattr__(self, name: str) -> Any:
        return getattr(self.data, name)

    def put(self, *args: Any, **more: Any) -> Any:
        if self.times:
            self.times -= 1
            raise Conflict("somebody else")
        return self.data.put(*args, **more)


def test_who_meets_another_writer_tries_again_and_gives_the_message_back_in_the_end():
    data = tenant("shop")
    tell_seen(Contended(data, 4), arrival(1), seen(1), NOW)
    assert row(data).seen == seen(1)
    with pytest.raises(Temporary):
        tell_seen(Contended(data, 99), arrival(2), seen(2), NOW)


def test_a_snapshot_tells_its_nodes_and_those_that_go_once_each():
    going = tuple(Taint(key=key) for key in ("plimsoll.dev/interruption", "karpenter.sh/disrupted"))
    nodes = (
        wire_node("a", taints=going),
        wire_node("b", labels={"node.kubernetes.io/capacity": "spot"}),
        wire_node("c"),
    )
    found = seen_columns(replace(wire_snapshot(nodes=nodes), agent=AGENT), NOW)
    assert (found.nodes, found.spot, found.open_interruptions) == (3, 1, 1)
    assert (found.agent, found.received_at) == (AGENT, NOW)


# --- Pages ----------------------------------------------------------------------------------------


@dataclass
class Counting:
    """Counts what is asked of a tenant's data."""

    data: MemoryTenantData
    asked: list[str] = field(default_factory=list)

    def list(self, *args: Any, **more: Any) -> Iterator[Any]:
        self.asked.append("list")
        return self.data.list(*args, **more)

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        return getattr(self.data, name)


def test_every_page_of_1200_clusters_is_one_query_and_all_are_listed_once():
    data = tenant(*(f"c-{n:04}" for n in range(1200)))
    found, after = list[str](), ""
    for page_number in range(1, 25):
        counting = Counting(data)
        query = {"limit": "50"} | ({"after": after} if after else {})
        asked = page_request(query, prefix=CLUSTER, filters=CLUSTER_FILTERS)
        page = clusters(counting, asked, NOW)
        assert counting.asked == ["list"]
        assert page.counts.clusters == 1200
        found += [each.name for each in page.items]
        after = page.next or ""
        assert bool(after) == (page_number < 24)
    assert found == [f"c-{n:04}" for n in range(1200)]


def test_clients_that_read_no_pages_get_a_thousand_by_id_and_the_number_of_the_others():
    data = tenant(*(f"c-{n:04}" for n in range(MOST_CLUSTERS + 2)))
    answer = clusters(data, PageRequest(), NOW)
    assert [each.id for each in answer.clusters] == [f"a-c-{n:04}" for n in range(MOST_CLUSTERS)]
    assert (answer.left_out, len(answer.items)) == (2, 50)
    assert clusters(data, PageRequest(explicit=True), NOW).clusters == ()


def test_what_older_clients_read_has_the_age_of_the_newest_snapshot():
    data = tenant("shop")
    tell_advised(data, "a-shop", ADVISED, NOW)
    [only_advised] = clusters(data, PageRequest(), NOW + MINUTE).clusters
    assert (only_advised.taken_at, only_advised.age_s) == (NOW, 60)
    tell_seen(data, arrival(1), seen(1), NOW)
    [both] = clusters(data, PageRequest(), NOW + MINUTE).clusters
    assert (both.taken_at, both.age_s) == (NOW + MINUTE, 0)


def fleet() -> MemoryTenantData:
    data = tenant("dock", "harbor", "quay", "shop")
    for name, agent in (
        ("dock", None),
        ("harbor", AGENT),
        ("quay", replace(AGENT, mode="read-only")),
    ):
        told = replace(seen(1, agent=agent), open_interruptions=int(name == "quay"))
        tell_seen(data, arrival(1, cluster=f"a-{name}"), told, NOW)
    tell_advised(data, "a-harbor", ADVISED, NOW)
    unpriced = replace(ADVISED, floors_missed=0, monthly=None, saveable=None, lines_broken=None)
    tell_advised(data, "a-dock", unpriced, NOW)
    return data


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({}, ["dock", "harbor", "quay", "shop"]),
        ({"name": "h"}, ["harbor"]),
        ({"mode": "act"}, ["harbor"]),
        ({"mode": "read-only"}, ["quay"]),
        ({"only": "silent"}, ["shop"]),
        ({"only": "interrupted"}, ["quay"]),
        ({"only": "floors-missed"}, ["harbor"]),
        ({"only": "lines-broken"}, ["harbor"]),
        ({"only": "decisions"}, ["dock", "harbor"]),
        ({"only": "decisions", "name": "d"}, ["dock"]),
    ],
    ids=str,
)
def test_filters_and_sums_are_of_the_service(query: dict[str, str], names: list[str]):
    asked = page_request({**query, "limit": "1"}, prefix=CLUSTER, filters=CLUSTER_FILTERS)
    page = clusters(fleet(), asked, NOW + MINUTE)
    assert [each.name for each in page.items] == names[:1]
    assert page.counts.clusters == len(names)


def test_sums_leave_out_what_nobody_told_and_say_of_how_many_clusters():
    counts = clusters(fleet(), PageRequest(), NOW + MINUTE).counts
    assert (counts.nodes, counts.spot, counts.silent, counts.interrupted) == (6, 3, 1, 1)
    assert (counts.floors_missed, counts.lines_broken, counts.decisions) == (1, 1, 8)
    assert (counts.monthly, counts.saveable, counts.unpriced) == (100.0, 30.0, 3)


def test_an_agent_is_silent_once_ten_minutes_have_passed_since_it_was_heard():
    data = fleet()
    for minutes, silent in ((11, 1), (12, 4)):
        asked = page_request({"only": "silent"}, prefix=CLUSTER, filters=AGENT_FILTERS)
        page = agents(data, asked, NOW + minutes * MINUTE)
        assert (len(page.items), page.silent) == (silent, silent)


def test_agents_tell_of_themselves():
    found = {each.name: each for each in agents(fleet(), PageRequest(), NOW + MINUTE).items}
    assert (found["harbor"].agent, found["harbor"].last_seen) == (AGENT, NOW + MINUTE)
    assert (found["dock"].agent, found["dock"].last_seen) == (None, NOW + MINUTE)
    assert (found["shop"].agent, found["shop"].last_seen) == (None, None)


def test_two_tenants_see_nothing_of_each_other():
    assert not clusters(tenant(), PageRequest(), NOW).clusters
    first, second = tenant("shop"), tenant("dock")
    after = clusters(tenant("a", "b"), PageRequest(limit=1), NOW).next or ""
    asked = page_request({"after": after}, prefix=CLUSTER, filters=CLUSTER_FILTERS)
    assert [each.name for each in clusters(first, asked, NOW).items] == ["shop"]
    assert [each.name for each in clusters(second, asked, NOW).items] == ["dock"]
