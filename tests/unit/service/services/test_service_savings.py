"""Savings as they are kept and read: prices by day, rollups by day, and what a person is answered."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import msgspec
import pytest

from plimsoll_service.adapters.price_table import price_table
from plimsoll_service.domain.analysis.prices import Price, PriceTable
from plimsoll_service.domain.snapshots.billed import Billed
from plimsoll_service.domain.snapshots.rollups import Rollup, Span, combined_rollup, rollup_of
from plimsoll_service.services.cluster_rows import cluster_row, remember_cluster
from plimsoll_service.services.day_prices import day_prices, keep_prices
from plimsoll_service.services.savings import savings_history
from plimsoll_service.wire.clusters import SavedColumns
from plimsoll_service.wire.documents import decode, encode
from plimsoll_service.wire.savings import DayPrices
from plimsoll_service.wire.snapshot import LoadBalancer, Volume
from plimsoll_simulation.fake_aws.service_stores import MemoryTenantData
from tests.support.advised import AdvisedCluster, harbor
from tests.support.bills import FIRST, LARGE, Months, day, keep_months, noon
from tests.support.snapshots import GIB, NOW, wire_node, wire_snapshot
from tests.unit.service.services.test_ingest import SHOP, Rig, a_snapshot

TODAY = NOW.date()
HOUR = timedelta(hours=1)


@dataclass
class Clock:
    time: datetime = NOW

    def now(self) -> datetime:
        return self.time


def a_table(on_demand: float, *, read: bool = True, name: str = "m5.large") -> PriceTable:
    return PriceTable(
        region="us-east-1",
        dates="by AWS's price list",
        read_on=TODAY if read else None,
        prices={name: Price(on_demand=on_demand, spot=on_demand / 3)},
    )


@dataclass
class Kept:
    """The prices of one cluster."""

    data: MemoryTenantData = field(default_factory=lambda: MemoryTenantData(Clock()))

    def keep(self, table: PriceTable, *types: str, now: datetime = NOW) -> None:
        keep_prices(self.data, "harbor", table, types or ("m5.large",), now)

    def of(self, at: datetime = NOW) -> DayPrices:
        (found,) = day_prices(self.data, "harbor", at.date(), at.date())
        return found


def test_the_first_price_that_aws_tells_on_a_day_is_that_of_the_day():
    kept = Kept()
    kept.keep(a_table(0.096))
    kept.keep(a_table(0.048), now=NOW + HOUR)
    assert kept.of().nodes["m5.large"] == pytest.approx((0.096, 0.032))
    (document,) = kept.data.list("harbor", "prices#", "prices#~")
    assert document.version == 1


def test_what_aws_tells_takes_the_place_of_the_shipped_table():
    kept = Kept()
    kept.keep(a_table(0.1, read=False))
    assert kept.of().read_on is None
    kept.keep(a_table(0.096))
    kept.keep(a_table(0.1, read=False))
    assert (kept.of().read_on, kept.of().nodes["m5.large"][0]) == (TODAY, 0.096)


def test_a_type_that_comes_or_went_is_priced_too():
    kept = Kept()
    kept.keep(a_table(0.096))
    other = a_table(0.2, name="c5.xlarge")
    both = replace(other, prices={**a_table(0.17).prices, **other.prices})
    kept.keep(both, "c5.xlarge")
    assert {name: price[0] for name, price in kept.of().nodes.items()} == {
        "m5.large": 0.096,
        "c5.xlarge": 0.2,
    }
    tomorrow = NOW + timedelta(days=1)
    kept.keep(replace(both, read_on=tomorrow.date()), "c5.xlarge", now=tomorrow)
    assert kept.of(tomorrow).nodes["m5.large"][0] == 0.17


def test_each_run_of_the_advice_keeps_the_prices_of_its_day():
    service = AdvisedCluster()
    service.advise(harbor())
    (kept,) = day_prices(service.data, "harbor", TODAY, TODAY)
    assert kept.nodes["m5.large"] == (0.096, price_table().prices["m5.large"].spot)
    assert (kept.read_on, kept.volumes["gp3"]) == (None, 0.08)
    assert kept.source == "us-east-1, on-demand of 2026-07-20, spot of 2025-06-28"


def billed_of_day(*parts: Rollup) -> Billed | None:
    made = combined_rollup(parts, Span.DAY)
    assert made is not None
    return made.billed


def test_a_day_sums_nodes_volumes_and_load_balancers_by_what_is_billed():
    seen = wire_snapshot(
        nodes=(
            wire_node("a"),
            wire_node("b"),
            wire_node("c", labels={"node.kubernetes.io/capacity": "spot"}),
            wire_node("d", labels={"node.kubernetes.io/instance-type": ""}),
        ),
        volumes=tuple(
            Volume(uid=u, name=u, phase="Bound", capacity=10 * GIB, type=t, created_at=NOW)
            for u, t in (("v", "gp3"), ("w", "gp3"), ("nfs", ""))
        ),
        load_balancers=tuple(
            LoadBalancer(
                uid=u,
                kind="Ingress",
                namespace="shop",
                name=u,
                address="lb.example.com",
                created_at=NOW,
            )
            for u in ("l", "m")
        ),
    )
    minute = rollup_of(seen)
    made = billed_of_day(minute, minute)
    assert made is not None
    assert (made.samples, made.left_out) == (2, 0)
    assert made.on_demand == {"m5.large": 4, "without a type": 2}
    assert made.spot == {"m5.large": 2}
    assert made.volumes == {"gp3": 2 * 20 * 1024}
    assert made.load_balancers == 2


def test_of_many_types_an_agent_names_the_day_says_that_it_is_not_whole():
    named = [{"node.kubernetes.io/instance-type": f"x{n}.large"} for n in range(150)]
    seen = wire_snapshot(
        nodes=tuple(wire_node(f"n-{i}", labels=each) for i, each in enumerate(named))
    )
    billed = billed_of_day(rollup_of(seen))
    assert billed is not None
    assert (len(billed.on_demand), billed.left_out) == (100, 50)


def test_a_rollup_of_an_older_version_still_decodes_and_tells_nothing_of_the_bill():
    old = msgspec.json.decode(encode(rollup_of(wire_snapshot())))
    del old["billed"]
    read = decode(msgspec.json.encode(old), Rollup)
    assert read.billed is None
    assert billed_of_day(read) is None
    both = billed_of_day(read, rollup_of(wire_snapshot()))
    assert both is not None
    assert both.samples == 1


def test_a_late_snapshot_makes_its_day_anew_once_and_counts_once(monkeypatch):
    monkeypatch.setattr("plimsoll_service.domain.savings.bills.LEAST_SAMPLES", 1)
    rig, start = Rig(), Span.DAY.start(NOW)
    later = start + timedelta(days=1, minutes=1)
    late = a_snapshot(2, at=start + timedelta(hours=9), nodes=3)
    for sent in (
        a_snapshot(1, at=start + timedelta(hours=8), nodes=1),
        a_snapshot(3, at=later, nodes=1),
    ):
        rig.clock.time = sent.taken_at
        rig.push(sent)
        rig.work_off()
    keep_prices(rig.data, SHOP, price_table(), ["m5.large"], start)

    def cost() -> list[float]:
        found = savings_history(rig.data, SHOP, None, rig.clock.time)
        return [each.cost for each in found.days]

    rig.clock.time = later + timedelta(minutes=20)
    rig.push(a_snapshot(4, at=rig.clock.time))
    rig.work_off()
    assert cost() == [pytest.approx(0.096 * 24)]
    for minutes in (25, 26):  # it comes twice
        rig.clock.time = later + timedelta(minutes=minutes)
        rig.push(late)
        rig.work_off()
    for sequence in range(5, 9):  # what it changed is made anew bit by bit
        rig.clock.time += timedelta(minutes=12)
        rig.push(a_snapshot(sequence, at=rig.clock.time))
        rig.work_off()
    assert cost() == [pytest.approx(2 * 0.096 * 24)]


def stored_months(months: Months) -> MemoryTenantData:
    """Return the data of a tenant that has what some months hold."""
    data = MemoryTenantData(Clock(noon(0)))
    keep_months(data, "harbor", months)
    return data


@pytest.fixture
def months() -> Months:
    made = Months(days=130)
    made.since(11, on_demand={"m5.large": 3})
    made.carry_out("consolidate-node", 10, LARGE)
    return made


def test_a_person_reads_ninety_two_days_and_then_those_before_them(months):
    data = stored_months(months)
    newest = savings_history(data, "harbor", None, noon(130))
    assert (newest.until, newest.since) == (day(129), day(38))
    assert (len(newest.days), newest.recommendations) == (92, ())
    assert newest.days[0].realised == pytest.approx(0.096 * 24)  # its thirty days go on
    older = savings_history(data, "harbor", noon(38), noon(130))
    assert (older.until, older.days[0].day) == (day(37), FIRST)
    (found,) = older.recommendations
    assert found.realised == pytest.approx(0.096 * 730, abs=0.01)


def test_today_is_never_whole_and_not_in_the_answer(months):
    found = savings_history(stored_months(months), "harbor", noon(400), noon(20))
    assert found.until == day(19)


def test_what_cannot_be_read_back_counts_as_a_gap_and_is_told(months):
    data = stored_months(months)
    key = f"day#{day(20)}T00:00"
    data.put("harbor", key, b"{", version=1, expires=noon(500))
    found = savings_history(data, "harbor", noon(31), noon(130))
    assert day(20) not in {each.day for each in found.days}
    assert found.months[0].gaps == 1
    assert data.faults[0][:2] == ("harbor", key)


def test_of_a_cluster_without_days_there_is_an_empty_answer():
    found = savings_history(MemoryTenantData(Clock()), "harbor", None, NOW)
    assert (found.days, found.recommendations) == ((), ())


def test_the_answer_is_what_its_type_says(months):
    found = savings_history(stored_months(months), "harbor", noon(60), noon(130))
    assert decode(encode(found), type(found)) == found


def test_the_row_of_a_cluster_tells_once_a_day_what_its_whole_days_show():
    service = AdvisedCluster()
    remember_cluster(service.data, "harbor", "harbor", service.time)

    def told() -> SavedColumns | None:
        row = cluster_row(service.data, "harbor", service.time)
        assert row
        return row.saved

    assert told() is None
    service.advise(harbor())
    first = told()
    assert first == SavedColumns(until=TODAY - timedelta(days=1), months=())
    keep_months(service.data, "harbor", Months(days=52))
    service.advise()
    assert told() == first, "the row tells of yesterday already"
    service.advise(minutes=24 * 60)
    later = told()
    assert later
    assert later.until == TODAY
    assert [(each.month, each.days, each.gaps) for each in later.months] == [
        ("2026-10", 31, 0),
        ("2026-11", 21, 1),
    ]
