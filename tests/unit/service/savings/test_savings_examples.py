"""Worked examples: what is booked as saved, what is not, and what cannot be told apart."""

from __future__ import annotations

import pytest
from msgspec import structs

from plimsoll_service.wire.advice import Frees
from plimsoll_service.wire.savings import Changed, RealisedRecommendation, SavingsHistory
from tests.support.bills import GIB, HOURLY, LARGE, MONTH, Held, Months, day, prices

NODE = 0.096 * 24
"""Dollars that an m5.large costs a day."""
CHANGE = 10


def realised(found: SavingsHistory) -> float:
    """What the months together say."""
    return sum(month.realised or 0.0 for month in found.months)


def changed(found: RealisedRecommendation) -> Changed:
    assert found.changed is not None
    return found.changed


@pytest.fixture
def cluster() -> Months:
    """Forty days of four m5.large, one of which goes at noon of the eleventh."""
    made = Months()
    made.since(CHANGE + 1, on_demand={"m5.large": 3})
    made.carry_out("consolidate-node", CHANGE, LARGE)
    return made


def test_a_consolidated_node_saved_what_it_cost_on_the_days_after_it(cluster):
    found = cluster.only()
    assert (found.verdict, found.days) == ("realised", 29)
    assert found.realised == pytest.approx(0.096 * 730, abs=0.01)
    assert changed(found).before.nodes == 4
    assert changed(found).after.nodes == 3
    assert (changed(found).others, changed(found).prices) == (0.0, 0.0)


def test_foreseen_and_realised_of_a_month_stand_side_by_side(cluster):
    october, november = cluster.history().months
    assert (october.month, october.days, october.gaps) == ("2026-10", 31, 0)
    assert october.foreseen == pytest.approx(20 * 0.096 * 730 / MONTH, abs=0.01)
    assert october.realised == pytest.approx(20 * NODE, abs=0.01)
    assert november.realised == pytest.approx(9 * NODE, abs=0.01)
    assert october.cost == pytest.approx((11 * 4 + 20 * 3) * NODE, abs=0.01)
    assert (october.untold, october.why) == (0.0, ())


def test_the_day_of_the_change_is_neither_before_nor_after_it(cluster):
    found = cluster.history().days[CHANGE]
    assert (found.foreseen, found.realised) == (0.0, None)


def test_thirty_days_after_a_change_are_measured(cluster):
    longer = Months(days=60)
    longer.since(CHANGE + 1, on_demand={"m5.large": 3})
    longer.carry_out("consolidate-node", CHANGE, LARGE)
    found = longer.history()
    assert found.recommendations[0].days == 30
    assert realised(found) == pytest.approx(30 * NODE, abs=0.02)
    assert found.days[CHANGE + 31].realised is None


def test_two_days_after_a_change_are_too_few(cluster):
    found = cluster.only(until=CHANGE + 2)
    assert (found.verdict, found.realised, found.days) == ("not yet", None, 2)
    assert found.why == "only 2 days after it are known, of at least 3"
    (month,) = cluster.history(until=CHANGE + 2).months
    assert month.realised is None
    assert month.untold == month.foreseen > 0


def test_without_days_before_it_a_change_is_never_measured():
    early = Months()
    early.carry_out("consolidate-node", 1, LARGE)
    found = early.only()
    assert (found.verdict, found.realised) == ("cannot be told apart", None)
    assert "only 1 days before it are known" in found.why


def test_right_sizing_saved_what_the_nodes_cost_less_once_the_requests_fell():
    cluster = Months()
    cluster.since(CHANGE + 1, cpu_m=3800)
    cluster.since(CHANGE + 5, on_demand={"m5.large": 3})
    cluster.carry_out("right-size", CHANGE, Frees(cpu_m=1200))
    found = cluster.only()
    assert found.verdict == "realised"
    assert found.realised == pytest.approx(NODE * MONTH * 25 / 29, abs=0.01)
    assert changed(found).others is None


def test_right_sizing_that_empties_no_node_saved_nothing():
    cluster = Months()
    cluster.since(CHANGE + 1, cpu_m=3800)
    cluster.carry_out("right-size", CHANGE, Frees(cpu_m=1200))
    assert cluster.only().realised == 0.0


def test_right_sizing_beside_a_scale_down_cannot_be_told_apart():
    cluster = Months()
    cluster.since(CHANGE + 1, cpu_m=2800, on_demand={"m5.large": 2})
    cluster.carry_out("right-size", CHANGE, Frees(cpu_m=1200))
    found = cluster.only()
    assert (found.verdict, found.realised) == ("cannot be told apart", None)
    assert found.why == "pods request 20.0% less than before, beside what was advised"


def test_a_scale_up_in_the_same_week_is_not_booked_against_the_advice(cluster):
    """Ten more pods of 500m bring three nodes three days after one was consolidated."""
    cluster.since(CHANGE + 3, on_demand={"m5.large": 6}, pods=30, cpu_m=10_000, memory=26 * GIB)
    found = cluster.only()
    assert found.verdict == "realised"
    assert found.realised == pytest.approx(0.096 * 730, abs=0.01)
    assert changed(found).others == pytest.approx(3 * NODE * 27 / 29, abs=0.01)
    assert changed(found).before.pods == 20
    assert changed(found).after.pods == pytest.approx(29.3, abs=0.1)
    assert realised(cluster.history()) == pytest.approx(29 * NODE, abs=0.02)


def test_more_nodes_than_more_requests_explain_cannot_be_told_apart(cluster):
    cluster.since(CHANGE + 3, on_demand={"m5.large": 6}, cpu_m=5300)
    found = cluster.only()
    assert found.verdict == "cannot be told apart"
    assert "other nodes came that cost $6.44 a day, and pods request only 5.6% more" in found.why


def test_a_scale_down_in_the_same_week_is_not_booked_as_saved(cluster):
    cluster.since(CHANGE + 3, on_demand={"m5.large": 1}, cpu_m=2000)
    found = cluster.only()
    assert (found.verdict, found.realised) == ("cannot be told apart", None)
    assert "an autoscaler may have removed as much for that" in found.why


def test_other_nodes_that_went_as_well_are_not_booked(cluster):
    cluster.since(CHANGE + 3, on_demand={"m5.large": 2})
    found = cluster.only()
    assert found.realised == pytest.approx(0.096 * 730, abs=0.01)
    assert changed(found).others == pytest.approx(-NODE * 27 / 29, abs=0.01)


def test_a_node_in_whose_place_a_bigger_one_came_cost_money(cluster):
    cluster.since(CHANGE + 1, on_demand={"m5.large": 3, "m5.xlarge": 1})
    found = cluster.only()
    assert found.verdict == "realised"
    assert found.realised == pytest.approx((0.096 - 0.192) * 730, abs=0.01)


def test_a_node_that_came_back_saved_nothing(cluster):
    cluster.since(CHANGE + 1, on_demand={"m5.large": 4})
    assert cluster.only().realised == 0.0


def test_a_price_cut_is_not_a_saving(cluster):
    half = HOURLY | {"m5.large": (0.048, 0.02)}
    for number in range(CHANGE + 1, 40):
        cluster.prices[number] = prices(day(number), nodes=half)
    found = cluster.only()
    assert found.realised == pytest.approx(0.048 * 730, abs=0.01)
    assert found.foreseen == pytest.approx(0.096 * 730, abs=0.01)
    assert changed(found).prices == pytest.approx(-4 * NODE / 2, abs=0.01)


def test_spot_is_priced_by_each_day_and_what_is_assumed_is_said():
    cluster = Months(days=20)
    cluster.since(0, on_demand={}, spot={"m5.large": 4})
    cluster.since(CHANGE + 1, spot={"m5.large": 3})
    cluster.carry_out("consolidate-node", CHANGE, structs.replace(LARGE, spot=True))
    for number in range(20):
        spot = HOURLY | {"m5.large": (0.096, 0.04 + number / 1000)}
        cluster.prices[number] = prices(day(number), nodes=spot)
    del cluster.prices[15]
    days = cluster.history().days
    assert days[14].realised == pytest.approx(0.054 * 24, abs=0.001)
    assert (days[14].assumed, days[16].assumed) == (False, False)
    assert (days[15].assumed, days[15].realised) == (True, days[14].realised)
    assert str(day(14)) in days[15].prices
    assert cluster.history().months[0].assumed == 1


def test_a_type_without_a_price_is_not_booked_at_nothing(cluster):
    cluster.since(CHANGE + 1, on_demand={"m5.large": 3, "x9.huge": 1})
    found = cluster.only()
    assert (found.verdict, found.realised) == ("cannot be told apart", None)
    assert "no price of x9.huge is known" in found.why


def test_a_deleted_volume_saved_its_price_whatever_others_came():
    cluster = Months()
    cluster.since(0, volumes={"gp3": 100})
    cluster.since(CHANGE + 1, volumes={"gp3": 450})
    frees = Frees(volume="gp3", volume_bytes=50 * GIB)
    cluster.carry_out("orphan-volume", CHANGE, frees, monthly=4.0)
    found = cluster.only()
    assert found.realised == pytest.approx(4.0, abs=0.01)
    assert changed(found).others == pytest.approx(400 * 0.08 / MONTH, abs=0.01)


def test_a_volume_that_aws_still_bills_is_not_booked_as_saved():
    cluster = Months()
    cluster.since(0, volumes={"gp3": 100})
    frees = Frees(volume="gp3", volume_bytes=50 * GIB)
    stays = {"monthly": 4.0, "seen_at": None}
    cluster.carry_out("orphan-volume", CHANGE, frees, state="accepted", **stays)
    cluster.carry_out("orphan-volume", CHANGE, frees, measurable=False, **stays)
    there, kept = cluster.history().recommendations
    assert (there.verdict, there.realised) == ("not yet", None)
    assert there.why == "the cluster does not show that it was carried out"
    assert (kept.verdict, kept.realised) == ("cannot be told apart", None)
    assert "whether AWS still bills it" in kept.why
    assert [month.realised for month in cluster.history().months] == [None, None]


def test_a_load_balancer_that_others_share_is_not_booked_as_saved():
    cluster = Months()
    cluster.since(0, load_balancers=2)
    cluster.carry_out("idle-load-balancer", CHANGE, Frees(load_balancers=1), monthly=16.43)
    assert cluster.only().verdict == "cannot be told apart"
    cluster.since(CHANGE + 1, load_balancers=1)
    assert cluster.only().realised == pytest.approx(16.43, abs=0.01)


def test_days_without_half_of_their_snapshots_are_a_gap_and_are_not_guessed(cluster):
    cluster.lose(12, 13, 14, 20)
    october, _ = cluster.history().months
    assert (october.days, october.gaps) == (27, 4)
    assert october.realised == pytest.approx(16 * NODE, abs=0.01)
    assert cluster.only().realised == pytest.approx(0.096 * 730, abs=0.01)


def test_a_month_without_any_known_day_is_a_gap():
    cluster = Months(days=70)
    cluster.lose(*range(31, 61))
    assert [(m.month, m.days, m.gaps) for m in cluster.history().months] == [
        ("2026-10", 31, 0),
        ("2026-11", 0, 30),
        ("2026-12", 9, 0),
    ]


def test_what_an_older_version_advised_is_not_told():
    cluster = Months()
    cluster.carry_out("consolidate-node", CHANGE, None)
    found = cluster.only()
    assert (found.verdict, found.realised) == ("cannot be told apart", None)
    assert "an older version made it" in found.why


def test_nodes_that_went_within_days_of_each_other_saved_each_its_own(cluster):
    cluster.since(CHANGE + 2, on_demand={"m5.large": 2})
    cluster.carry_out("consolidate-node", CHANGE + 1, LARGE)
    found = cluster.history()
    assert [each.realised for each in found.recommendations] == [
        pytest.approx(0.096 * 730, abs=0.01)
    ] * 2
    assert realised(found) == pytest.approx(28 * 2 * NODE, abs=0.02)


def test_nodes_that_went_together_and_saved_less_cannot_be_told_apart(cluster):
    cluster.carry_out("consolidate-node", CHANGE + 1, LARGE)
    found = cluster.history()
    assert {each.verdict for each in found.recommendations} == {"cannot be told apart"}
    assert "together they saved $70.08 a month, and were foreseen to save $140.16" in (
        found.recommendations[0].why
    )
    # The month is measured by the bill, and not by its recommendations.
    assert realised(found) == pytest.approx(28 * NODE, abs=0.02)


def test_a_later_change_is_measured_together_with_the_earlier_one(cluster):
    cluster.since(CHANGE + 11, on_demand={"m5.large": 2})
    cluster.carry_out("consolidate-node", CHANGE + 10, LARGE)
    found = cluster.history()
    assert [each.realised for each in found.recommendations] == [
        pytest.approx(0.096 * 730, abs=0.01)
    ] * 2
    assert found.days[CHANGE + 5].realised == pytest.approx(NODE, abs=0.001)
    assert found.days[CHANGE + 15].realised == pytest.approx(2 * NODE, abs=0.001)


def test_a_mix_is_measured_from_its_acceptance_by_what_the_nodes_cost():
    cluster = Months()
    cluster.since(CHANGE + 3, on_demand={"c5.large": 4})
    mix = {"state": "accepted", "seen_at": None, "monthly": 32.12}
    cluster.carry_out("instance-mix", CHANGE, Frees(), **mix)
    found = cluster.only()
    assert found.realised == pytest.approx(4 * 0.011 * 730 * 27 / 29, abs=0.01)


def test_nodes_whose_cost_differs_from_day_to_day_tell_nothing_of_a_mix():
    cluster = Months()
    for number in range(0, 40, 2):
        cluster.held[number] = Held(on_demand={"m5.large": 5})
    cluster.carry_out("instance-mix", CHANGE, Frees(), state="accepted", seen_at=None)
    assert "differed by $2.30 from day to day" in cluster.only().why


def test_what_nobody_accepted_is_not_booked(cluster):
    cluster.done = [structs.replace(each, state="withdrawn") for each in cluster.done]
    found = cluster.history()
    assert found.recommendations == ()
    assert [month.realised for month in found.months] == [None, None]
