"""What is remembered of capacity pools."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from plimsoll.domain.node_groups import InsufficientCapacity, VcpuQuota
from plimsoll.domain.spot import CapacityPool, PoolEvent, PoolEventKind, events_of
from tests.support.builders import NOON, ZONE_A, ZONE_B, a_group, a_node

M5 = CapacityPool("m5.xlarge", ZONE_A, "spot")


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
