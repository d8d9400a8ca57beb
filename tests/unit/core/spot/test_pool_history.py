"""What is remembered of capacity pools, and how it decides who is asked."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from plimsoll.domain.capacity import plan_growth
from plimsoll.domain.node_groups import InsufficientCapacity, VcpuQuota
from plimsoll.domain.scheduling import ClusterSnapshot
from plimsoll.domain.spot import CapacityPool, PoolEvent, PoolEventKind, events_of, risks
from plimsoll.domain.spot.pool_history import HALF_LIFE, MERGED
from tests.support.builders import NOON, ZONE_A, ZONE_B, a_group, a_node, a_pod

M5, R5 = (CapacityPool(f"{family}.xlarge", ZONE_A, "spot") for family in ("m5", "r5"))


def befell(pool: CapacityPool, kind: PoolEventKind, before: timedelta) -> PoolEvent:
    return PoolEvent(pool=pool, kind=kind, at=NOON - before)


def risk(kind: PoolEventKind, before: timedelta) -> float:
    return risks([befell(M5, kind, before)], NOON)[M5]


def test_a_pool_that_is_reclaimed_now_is_at_full_risk_and_loses_half_of_the_rest_in_each_half_life():
    assert risk(PoolEventKind.INTERRUPTION, timedelta(minutes=9)) == 1.0
    assert risk(PoolEventKind.INTERRUPTION, MERGED) == pytest.approx(0.5, abs=0.002)
    assert risk(PoolEventKind.INTERRUPTION, HALF_LIFE) == 0.333
    assert risk(PoolEventKind.INTERRUPTION, 2 * HALF_LIFE) == 0.2


def test_of_pools_that_are_lost_often_the_worse_is_still_told():
    def lost(pool: CapacityPool, times: int) -> list[PoolEvent]:
        hours = (timedelta(hours=n) for n in range(1, times + 1))
        return [befell(pool, PoolEventKind.INTERRUPTION, before) for before in hours]

    found = risks([*lost(M5, 20), *lost(R5, 10)], NOON)
    assert 0.5 < found[R5] < found[M5] < 1


def test_an_interruption_tells_more_than_a_recommendation_and_that_more_than_a_refusal():
    told = [risk(kind, HALF_LIFE) for kind in PoolEventKind]
    assert told == sorted(told, reverse=True)
    assert risk(PoolEventKind.LAUNCH, HALF_LIFE) == 0.0


def test_what_many_instances_of_a_pool_tell_within_minutes_is_one_event():
    whole = datetime.fromtimestamp(NOON.timestamp() // 600 * 600, NOON.tzinfo)
    storm = [
        PoolEvent(pool=M5, kind=PoolEventKind.INTERRUPTION, at=whole + timedelta(seconds=n))
        for n in range(500)
    ]
    assert len({event.key for event in storm}) == 1


def test_launches_that_became_ready_and_refusals_for_want_of_capacity_are_events():
    told = InsufficientCapacity(at=NOON, why="none", zone=ZONE_B)
    quota = VcpuQuota(at=NOON, why="none")
    group = replace(a_group(), launched={"i-1": NOON, "i-2": NOON})
    nodes = [
        replace(a_node("a", zone=ZONE_A), instance="i-1"),
        replace(a_node("b", zone=ZONE_A), instance="i-2", ready=False),
    ]
    assert [(e.kind, e.pool.zone) for e in events_of(group, [told, quota], nodes)] == [
        (PoolEventKind.REFUSAL, ZONE_B),
        (PoolEventKind.LAUNCH, ZONE_A),
    ]


@pytest.mark.parametrize(
    ("remembered", "chosen"),
    [
        ({}, "m5"),
        ({M5: 0.5}, "r5"),
        ({M5: 0.5, R5: 0.9}, "m5"),
        ({M5: 1.0, R5: 0.9}, "r5"),
        ({M5: 1.0, R5: 1.0}, "m5"),
    ],
)
def test_of_spot_groups_the_one_at_the_least_risk_is_asked_and_as_last_resort_any(
    remembered: dict[CapacityPool, float], chosen: str
):
    groups = [
        replace(a_group(name, capacity="spot", zones=[ZONE_A]), instance_types=(f"{name}.xlarge",))
        for name in ("m5", "r5")
    ]
    plan = plan_growth(
        ClusterSnapshot([], []), [a_pod()], groups, upcoming={}, now=NOON, pools=remembered
    )
    assert [growth.group.name for growth in plan.growths] == [chosen]


def test_on_demand_comes_first_whatever_is_remembered_of_its_pools():
    base = replace(a_group(zones=[ZONE_A]), instance_types=("m5.xlarge",))
    spot = replace(a_group("spot", capacity="spot", zones=[ZONE_A]), instance_types=("r5.xlarge",))
    refused = {CapacityPool("m5.xlarge", ZONE_A, "on-demand"): 0.05}
    plan = plan_growth(
        ClusterSnapshot([], []), [a_pod()], [base, spot], upcoming={}, now=NOON, pools=refused
    )
    assert [growth.group.name for growth in plan.growths] == ["base"]
